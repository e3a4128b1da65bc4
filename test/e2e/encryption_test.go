// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"

	"k8s.io/apimachinery/pkg/watch"

	"github.com/borough-io/borough/pkg/storage/storagetest"
	"github.com/borough-io/borough/test/harness"
	"github.com/borough-io/borough/test/poll"
)

// TestEncryptionOfTwoServers encrypts what is stored in plain text, in the steps of
// docs/operations.md, while one of two servers always serves. After each restart, both
// servers read what the other one writes, their watches report no object as deleted, and
// quotas count it.
func TestEncryptionOfTwoServers(t *testing.T) {
	t.Parallel()
	const identity, key = "{identity: {}}", "{aesgcm: {keys: [{name: one, secret: MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=}]}}"
	endpoint := storagetest.StartGRPC(t)
	etcd := storagetest.NewClient(t, endpoint)
	config := filepath.Join(t.TempDir(), "encryption.yaml")
	first, second, _ := startTwo(t, endpoint, nil)
	ns, pods := newNamespace(t, first), 0
	createQuota(t, first, ns, newQuota("q", "pods=100"))

	// write creates a Pod through one server, which the other one has to show.
	write := func(through, other *harness.Borough) {
		t.Helper()
		event := stream(t, other, api+"/namespaces/"+ns+"/pods", url.Values{"watch": {"1"}, "timeoutSeconds": {"60"}})
		name := fmt.Sprint("p", pods)
		createPod(t, through, ns, newPod(name))
		pods++
		for seen := 0; seen < pods; seen++ {
			if got := event(); got.Type != watch.Added {
				t.Fatalf("got %s %s", got.Type, got.Object)
			}
		}
		for _, b := range []*harness.Borough{through, other} {
			wantUsed(t, b, ns, "q", fmt.Sprint("pods=", pods))
			if got := rows(b.Kubectl(t, "get", "pods", "-n", ns, "-o", "name")); len(got) != pods {
				t.Errorf("there are the Pods %q, want %d", got, pods)
			}
		}
	}
	// roll restarts one server after the other with the providers.
	roll := func(providers string) {
		t.Helper()
		content := "apiVersion: apiserver.config.k8s.io/v1\nkind: EncryptionConfiguration\nresources: [{resources: ['*.*'], providers: [" + providers + "]}]\n"
		if err := os.WriteFile(config, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		for _, servers := range [][2]*harness.Borough{{first, second}, {second, first}} {
			if err := servers[0].Stop(); err != nil {
				t.Fatal(err)
			}
			if err := servers[0].StartServer(t.Context(), "--etcd-servers="+endpoint, "--encryption-provider-config="+config); err != nil {
				t.Fatal(err)
			}
			write(servers[0], servers[1])
			write(servers[1], servers[0])
		}
	}
	// plain returns the keys of objects that are not encrypted.
	plain := func() (keys []string) {
		t.Helper()
		response, err := etcd.Get(t.Context(), "/registry/", clientv3.WithPrefix())
		if err != nil {
			t.Fatal(err)
		}
		for _, kv := range response.Kvs {
			if bytes.HasPrefix(kv.Value, []byte("k8s\x00")) {
				keys = append(keys, string(kv.Key))
			}
		}
		return keys
	}

	roll(identity + ", " + key)
	roll(key + ", " + identity)
	if len(plain()) == 0 {
		t.Error("nothing is left to be written again")
	}
	for _, resource := range []string{
		ownNamespaces, "resourcequotas", "limitranges", "pods",
		"roles", "rolebindings", "clusterroles", "clusterrolebindings",
	} {
		list := first.Kubectl(t, "get", resource, "-A", "-o", "json")
		if _, stderr, err := first.TryKubectl(t, list, "replace", "-f", "-"); err != nil && !strings.Contains(stderr, "no objects passed to replace") {
			t.Fatalf("replace %s: %v\n%s", resource, err, stderr)
		}
	}
	if left := plain(); len(left) > 0 {
		t.Errorf("not encrypted: %q", left)
	}
	roll(key)

	if err := second.StartController(t.Context()); err != nil {
		t.Fatal(err)
	}
	deleteNamespace(t, first, ns)
	poll.Eventually(t, gone(t, second, ns))
}
