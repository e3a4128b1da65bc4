// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"

	v1 "github.com/borough-io/borough/pkg/apis/tenancy/v1"
	"github.com/borough-io/borough/pkg/generated/clientset/versioned"
	"github.com/borough-io/borough/test/harness"
	"github.com/borough-io/borough/test/kubernetes/testcluster"
	"github.com/borough-io/borough/test/poll"
)

// writeEncryption writes an encryption configuration with keys in the order of
// the names. Each kind has a different provider.
func writeEncryption(t *testing.T, file string, names ...string) {
	t.Helper()
	var keys []string
	for _, name := range names {
		secret := base64.StdEncoding.EncodeToString(bytes.Repeat([]byte(name[:1]), 32))
		keys = append(keys, fmt.Sprintf("{name: %s, secret: %s}", name, secret))
	}
	config := strings.ReplaceAll(`apiVersion: apiserver.config.k8s.io/v1
kind: EncryptionConfiguration
resources:
- resources: [namespaces.tenancy.borough.io]
  providers: [{secretbox: {keys: [KEYS]}}]
- resources: [limitranges.tenancy.borough.io]
  providers: [{aesgcm: {keys: [KEYS]}}]
- resources: ["*.tenancy.borough.io"]
  providers: [{aescbc: {keys: [KEYS]}}]
`, "KEYS", strings.Join(keys, ", "))
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
}

func newEtcdClient(t *testing.T, etcd *testcluster.Etcd) *clientv3.Client {
	t.Helper()
	client, err := etcd.NewClient()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	return client
}

// TestEncryption runs a server that encrypts everything it stores. Without an
// admission plugin in front of the fence, the server reads the Namespace only
// from encrypted data. It is restarted with each change, so that its caches are
// empty.
func TestEncryption(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	etcd := newEtcdClient(t, cluster.Etcd)
	server := harness.New(t)
	config := filepath.Join(t.TempDir(), "encryption.yaml")
	prefix := "/" + newName("encrypted")
	var clientset versioned.Interface
	// restart starts the server with the keys of these names.
	restart := func(keys ...string) {
		t.Helper()
		writeEncryption(t, config, keys...)
		if server.Server != nil {
			if err := server.Server.Stop(); err != nil {
				t.Fatal(err)
			}
		}
		err := server.StartServer(ctx, append(cluster.Etcd.ClientFlags(), "--etcd-prefix="+prefix,
			"--disable-admission-plugins=NamespaceLifecycle", "--encryption-provider-config="+config)...)
		if err != nil {
			t.Fatal(err)
		}
		clientset = server.Client(t)
	}
	create := func(namespace, name string) error {
		pod := &v1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "example.com/secret:1"}}},
		}
		_, err := clientset.TenancyV1().Pods(namespace).Create(ctx, pod, metav1.CreateOptions{})
		return err
	}
	// wantKey fails the test unless every value is encrypted with a key.
	wantKey := func(key string) {
		t.Helper()
		for resource, provider := range map[string]string{"namespaces": "secretbox", "limitranges": "aesgcm", "pods": "aescbc"} {
			response, err := etcd.Get(ctx, prefix+"/tenancy.borough.io/"+resource+"/", clientv3.WithPrefix())
			if err != nil || len(response.Kvs) == 0 {
				t.Fatalf("%s in etcd: %v, error %v", resource, response, err)
			}
			for _, kv := range response.Kvs {
				if want := "k8s:enc:" + provider + ":v1:" + key + ":"; !bytes.HasPrefix(kv.Value, []byte(want)) {
					t.Errorf("%s starts with %q, want %q", kv.Key, kv.Value[:min(len(kv.Value), 40)], want)
				}
				if bytes.Contains(kv.Value, []byte("example.com")) {
					t.Errorf("%s contains plain text", kv.Key)
				}
			}
		}
	}

	// rewrite writes every object unchanged.
	rewrite := func() {
		t.Helper()
		objects, err := dynamic.NewForConfig(server.Config(t, "admin"))
		if err != nil {
			t.Fatal(err)
		}
		for _, resource := range []string{"namespaces", "limitranges", "pods"} {
			client := objects.Resource(v1.SchemeGroupVersion.WithResource(resource))
			list, err := client.List(ctx, metav1.ListOptions{})
			if err != nil {
				t.Fatal(err)
			}
			for _, object := range list.Items {
				if _, err := client.Namespace(object.GetNamespace()).Update(ctx, &object, metav1.UpdateOptions{}); err != nil {
					t.Fatal(err)
				}
			}
		}
	}

	restart("one")
	client := clientset.TenancyV1()
	for _, name := range []string{"active", "terminating"} {
		if _, err := client.Namespaces().Create(ctx, &v1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		if _, err := client.LimitRanges(name).Create(ctx, newLimitRange(corev1.LimitTypePod), metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	if err := client.Namespaces().Delete(ctx, "terminating", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}

	// Rotate the keys: add a key last, use it first, remove the old one.
	for i, step := range []struct {
		keys    []string
		rewrite bool
		want    string
	}{
		{keys: []string{"one", "two"}, want: "one"},
		{keys: []string{"two", "one"}, rewrite: true, want: "two"},
		{keys: []string{"two"}, want: "two"},
	} {
		restart(step.keys...)
		name := fmt.Sprintf("pod-%d", i)
		if err := create("terminating", name); !apierrors.HasStatusCause(err, v1.NamespaceTerminatingCause) {
			t.Errorf("%v: create in a terminating Namespace: got error %v", step.keys, err)
		}
		if err := create("missing", name); !apierrors.IsNotFound(err) {
			t.Errorf("%v: create in a missing Namespace: got error %v", step.keys, err)
		}
		if err := create("active", name); err != nil {
			t.Errorf("%v: create: %v", step.keys, err)
		}
		if err := create("active", name); !apierrors.IsAlreadyExists(err) {
			t.Errorf("%v: create again: got error %v", step.keys, err)
		}
		if step.rewrite {
			rewrite()
		}
		wantKey(step.want)
	}

	// A Namespace is removed once its content is.
	if err := clientset.TenancyV1().Namespaces().Delete(ctx, "active", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := server.StartController(ctx); err != nil {
		t.Fatal(err)
	}
	poll.Eventually(t, func() string {
		left, err := etcd.Get(ctx, prefix+"/tenancy.borough.io/", clientv3.WithPrefix(), clientv3.WithKeysOnly())
		if err != nil {
			return err.Error()
		}
		var keys []string
		for _, kv := range left.Kvs {
			keys = append(keys, strings.TrimPrefix(string(kv.Key), prefix+"/tenancy.borough.io/"))
		}
		if !slices.Equal(keys, []string{"limitranges/default/limits", "namespaces/default"}) {
			return fmt.Sprintf("left in etcd: %q", keys)
		}
		return ""
	})
}
