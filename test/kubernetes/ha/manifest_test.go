// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package ha

import (
	"context"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.etcd.io/etcd/client/pkg/v3/transport"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/borough-io/borough/test/harness"
	"github.com/borough-io/borough/test/kubernetes/testcluster"
)

// TestEtcdManifest runs the three members of the StatefulSet with its
// arguments. They differ only where the Pods would have separate addresses and
// volumes.
func TestEtcdManifest(t *testing.T) {
	t.Parallel()
	set, err := testcluster.EtcdManifest()
	if err != nil {
		t.Fatal(err)
	}
	container := set.Spec.Template.Spec.Containers[0]
	path, err := testcluster.Binary(container.Command[0])
	if err != nil {
		t.Fatal(err)
	}
	tls := newTLSFiles(t)

	// ports maps the ports of the manifest to local ports, by member.
	ports := make([]map[string]int, *set.Spec.Replicas)
	var everywhere []string // replacements in the arguments of all members
	for i := range ports {
		ports[i] = map[string]int{}
		for _, port := range container.Ports {
			if ports[i][port.Name], err = harness.FreePort(); err != nil {
				t.Fatal(err)
			}
			host := fmt.Sprintf("%s-%d.%s.%s.svc", set.Name, i, set.Spec.ServiceName, set.Namespace)
			everywhere = append(everywhere,
				fmt.Sprintf("%s:%d", host, port.ContainerPort), fmt.Sprintf("127.0.0.1:%d", ports[i][port.Name]))
		}
	}
	var endpoints []string
	for i := range ports {
		here := []string{"/var/lib/etcd", t.TempDir(), "/etc/etcd/tls", tls}
		for _, port := range container.Ports {
			here = append(here, fmt.Sprintf("0.0.0.0:%d", port.ContainerPort), fmt.Sprintf("127.0.0.1:%d", ports[i][port.Name]))
		}
		// Where each Pod has a loopback address of its own, the members share one.
		http, err := harness.FreePort()
		if err != nil {
			t.Fatal(err)
		}
		here = append(here, "127.0.0.1:2382", fmt.Sprintf("127.0.0.1:%d", http))
		var args []string
		for _, arg := range container.Args {
			arg = strings.ReplaceAll(arg, "$(POD_NAME)", fmt.Sprintf("%s-%d", set.Name, i))
			args = append(args, strings.NewReplacer(append(here, everywhere...)...).Replace(arg))
		}
		member, err := harness.StartProcess(path, args...)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if t.Failed() {
				t.Log(member.Tail(20))
			}
			member.Kill()
		})
		endpoints = append(endpoints, fmt.Sprintf("https://127.0.0.1:%d", ports[i]["client"]))
	}

	for i := range ports {
		for _, probe := range []string{
			container.StartupProbe.HTTPGet.Path, container.ReadinessProbe.HTTPGet.Path, container.LivenessProbe.HTTPGet.Path,
		} {
			url := fmt.Sprintf("http://127.0.0.1:%d%s", ports[i]["metrics"], probe)
			if err := await(t.Context(), func(ctx context.Context) error { return getOK(ctx, url) }); err != nil {
				t.Fatalf("%s-%d: %v", set.Name, i, err)
			}
		}
	}
	config, err := transport.TLSInfo{
		CertFile:      filepath.Join(tls, "tls.crt"),
		KeyFile:       filepath.Join(tls, "tls.key"),
		TrustedCAFile: filepath.Join(tls, "ca.crt"),
	}.ClientConfig()
	if err != nil {
		t.Fatal(err)
	}
	client, err := clientv3.New(clientv3.Config{Endpoints: endpoints, TLS: config})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	members, err := client.MemberList(t.Context())
	if err != nil || len(members.Members) != len(ports) {
		t.Fatalf("the members are %v, error %v", members, err)
	}
	if _, err := client.Put(t.Context(), "key", "value"); err != nil {
		t.Error(err)
	}
}

// newTLSFiles returns a directory with the files of a mounted TLS Secret.
func newTLSFiles(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	ca := testcluster.NewCAForTest(t, "etcd")
	cert, key, err := ca.Issue(pkix.Name{CommonName: "etcd"}, "127.0.0.1")
	if err != nil {
		t.Fatal(err)
	}
	for name, data := range map[string][]byte{"ca.crt": ca.CertPEM, "tls.crt": cert, "tls.key": key} {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func getOK(ctx context.Context, url string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return errors.New(url + ": " + response.Status)
	}
	return nil
}
