// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/borough-io/borough/pkg/storage/storagetest"
	"github.com/borough-io/borough/test/harness"
)

// TestQuotaOfAnotherServer writes quotas through one server and, after its response,
// Pods through another one whose watches are delayed.
func TestQuotaOfAnotherServer(t *testing.T) {
	t.Parallel()
	first, second, proxy := startTwo(t, storagetest.StartGRPC(t), nil)
	proxy.SetDelay(200 * time.Millisecond)
	for _, known := range []bool{false, true} {
		t.Run(fmt.Sprintf("the other server has written to the Namespace: %t", known), func(t *testing.T) {
			ns := newNamespace(t, first)
			createPod(t, first, ns, newPod("a"))
			if known {
				createPod(t, second, ns, newPod("known"))
				deletePod(t, second, ns, "known")
			}
			full := func(pod string, n int) {
				t.Helper()
				// Who holds what is used is read from the cache, which is delayed.
				message, _, _ := strings.Cut(wantCode(t, tryPod(t, second, ns, newPod(pod)), 403).Message, ", of which ")
				wantEqual(t, "message", message, fmt.Sprintf("pods.tenancy.borough.io %q is forbidden: exceeded quota: q, requested: pods=1, used: pods=%d, limited: pods=%[2]d", pod, n))
			}
			createQuota(t, first, ns, newQuota("q", "pods=1"))
			full("b", 1)
			deletePod(t, first, ns, "a")
			createPod(t, second, ns, newPod("b"))
			full("c", 1)
			setHard(t, first, ns, "q", "pods=2")
			createPod(t, second, ns, newPod("c"))
			full("d", 2)
			wantUsed(t, first, ns, "q", "pods=2")
			first.Kubectl(t, "delete", "quota", "q", "-n", ns)
			createPod(t, second, ns, newPod("d"))
		})
	}
}

// TestQuotaRace creates Pods through two servers at once. Exactly as many as the quota
// allows must be created.
func TestQuotaRace(t *testing.T) {
	t.Parallel()
	first, second, _ := startTwo(t, storagetest.StartGRPC(t), nil)
	ns := newNamespace(t, first)
	const allowed, workers, each = 10, 4, 10
	createQuota(t, first, ns, newQuota("q", fmt.Sprintf("pods=%d", allowed)))
	var created atomic.Int32
	var working sync.WaitGroup
	for i, server := range []*harness.Borough{first, second} {
		pods := server.Client(t).TenancyV1().Pods(ns)
		for worker := range workers {
			working.Go(func() {
				for n := range each {
					_, err := pods.Create(t.Context(), newPod(fmt.Sprintf("p-%d-%d-%d", i, worker, n)), metav1.CreateOptions{})
					switch {
					case err == nil:
						created.Add(1)
					case !apierrors.IsForbidden(err):
						t.Error(err)
					}
				}
			})
		}
	}
	working.Wait()
	wantEqual(t, "Pods created", created.Load(), int32(allowed))
	wantUsed(t, second, ns, "q", fmt.Sprintf("pods=%d", allowed))
	wantEqual(t, "Pods", len(rows(first.Kubectl(t, "get", "pods", "-n", ns, "--no-headers"))), allowed)
}

// TestQuotaWriters creates, resizes and deletes Pods in one Namespace through two servers,
// one of which has delayed watches. No write may fail because of another one.
func TestQuotaWriters(t *testing.T) {
	t.Parallel()
	first, second, proxy := startTwo(t, storagetest.StartGRPC(t), nil)
	proxy.SetDelay(200 * time.Millisecond)
	ns := newNamespace(t, first)
	createQuota(t, first, ns, newQuota("all", "pods=1k requests.cpu=10k"))
	createQuota(t, second, ns, newQuota("scope", "pods=1k requests.cpu=10k", func(spec *corev1.ResourceQuotaSpec) {
		spec.Scopes = []corev1.ResourceQuotaScope{corev1.ResourceQuotaScopeNotTerminating}
	}))
	writers, kept := 32, 5
	if harness.RaceEnabled { // the race detector makes each write cost more
		kept = 2
	}
	cpu := 0
	var writing sync.WaitGroup
	for writer := range writers {
		one, other := first.Client(t).TenancyV1().Pods(ns), second.Client(t).TenancyV1().Pods(ns)
		if writer%2 == 1 {
			one, other = other, one
		}
		cpu += kept * (2 + writer)
		resize := fmt.Appendf(nil, `{"spec":{"containers":[{"name":"c","resources":{"requests":{"cpu":"%d"}}}]}}`, 2+writer)
		writing.Go(func() {
			for n := range 2 * kept {
				pod := newPod(fmt.Sprintf("p-%d-%d", writer, n), withResources(quantities("cpu=1"), nil))
				if _, err := one.Create(t.Context(), pod, metav1.CreateOptions{}); err != nil {
					t.Errorf("create: %v", err)
				}
				if _, err := other.Patch(t.Context(), pod.Name, types.StrategicMergePatchType, resize, metav1.PatchOptions{}, "resize"); err != nil {
					t.Errorf("resize: %v", err)
				}
				if n < kept {
					continue
				}
				if err := one.Delete(t.Context(), pod.Name, metav1.DeleteOptions{}); err != nil {
					t.Errorf("delete: %v", err)
				}
			}
		})
	}
	writing.Wait()
	for _, quota := range []string{"all", "scope"} {
		wantUsed(t, first, ns, quota, fmt.Sprintf("pods=%d requests.cpu=%d", writers*kept, cpu))
	}
}

// TestQuotaEncrypted checks that quotas are encrypted in etcd, regardless of what has
// written them last: a client, a count or a charge.
func TestQuotaEncrypted(t *testing.T) {
	t.Parallel()
	config := filepath.Join(t.TempDir(), "encryption.yaml")
	if err := os.WriteFile(config, []byte(`apiVersion: apiserver.config.k8s.io/v1
kind: EncryptionConfiguration
resources:
- resources: ["*.tenancy.borough.io"]
  providers: [{aesgcm: {keys: [{name: one, secret: MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=}]}}]
`), 0o600); err != nil {
		t.Fatal(err)
	}
	url := storagetest.StartGRPC(t)
	etcd, b := storagetest.NewClient(t, url), harness.New(t)
	start := func() {
		t.Helper()
		if err := b.StartServer(t.Context(), "--etcd-servers="+url, "--encryption-provider-config="+config); err != nil {
			t.Fatal(err)
		}
	}
	start()
	ns := newNamespace(t, b)
	want := func(used string) {
		t.Helper()
		wantUsed(t, b, ns, "q", used)
		response, err := etcd.Get(t.Context(), inEtcd+"resourcequotas/"+ns+"/q")
		if err != nil || len(response.Kvs) != 1 {
			t.Fatalf("read the quota: %v", err)
		}
		if value := response.Kvs[0].Value; !bytes.HasPrefix(value, []byte("k8s:enc:aesgcm:v1:one:")) {
			t.Errorf("the quota is not encrypted: %q", value)
		}
	}
	createPod(t, b, ns, newPod("a"))
	createQuota(t, b, ns, newQuota("q", "pods=2"))
	want("pods=1")
	// A server that has just started reads the quota from etcd.
	if err := b.Stop(); err != nil {
		t.Fatal(err)
	}
	start()
	createPod(t, b, ns, newPod("b"))
	want("pods=2")
	wantCode(t, tryPod(t, b, ns, newPod("c")), 403)
	deletePod(t, b, ns, "a")
	want("pods=1")
}

// TestQuotaUnreadable checks that nothing that a quota may count changes while the
// quota cannot be read, that such quotas can be deleted, and that it counts again when
// it can be read.
func TestQuotaUnreadable(t *testing.T) {
	t.Parallel()
	url := storagetest.StartGRPC(t)
	b, etcd := harness.New(t), storagetest.NewClient(t, url)
	if err := b.StartServer(t.Context(), "--etcd-servers="+url); err != nil {
		t.Fatal(err)
	}
	ns := newNamespace(t, b)
	createPod(t, b, ns, newPod("a"))
	for _, name := range []string{"q", "r"} {
		createQuota(t, b, ns, newQuota(name, "pods=1 resourcequotas=5"))
	}
	keys := []string{"resourcequotas/" + ns + "/q", "resourcequotas/" + ns + "/r"}
	flipKeys(t, etcd, keys...)
	reason := `a resource quota of namespace "` + ns + `" may count the object, but cannot be read`
	wantContains(t, wantCode(t, tryPod(t, b, ns, newPod("b")), 500).Message, reason)
	b.Kubectl(t, "label", "pod", "a", "-n", ns, "a=b") // changes no usage
	flipKeys(t, etcd, "pods/"+ns+"/a")
	unreadablePod := api + "/namespaces/" + ns + "/pods/a?ignoreStoreReadErrorWithClusterBreakingPotential=true"
	wantContains(t, b.KubectlFails(t, "delete", "--raw", unreadablePod), reason)
	flipKeys(t, etcd, "pods/"+ns+"/a")
	wantContains(t, b.KubectlFails(t, "delete", "pod", "a", "-n", ns), "(InternalError)", reason)

	flipKeys(t, etcd, keys...) // back to what they were
	// The delete has marked the Pod, so that it can be named as what holds the quota.
	wantContains(t, wantCode(t, tryPod(t, b, ns, newPod("b")), 403).Message, "exceeded quota: q, requested: pods=1, used: pods=1, limited: pods=1")

	flipKeys(t, etcd, keys...)
	wantCode(t, tryPod(t, b, ns, newPod("b")), 500)
	for _, name := range []string{"q", "r"} {
		unsafely := api + "/namespaces/" + ns + "/resourcequotas/" + name + "?ignoreStoreReadErrorWithClusterBreakingPotential=true"
		wantContains(t, b.Kubectl(t, "delete", "--raw", unsafely), "Success")
	}
	createPod(t, b, ns, newPod("b"))
}

// TestQuotaOfUnreadablePod checks that the deletion of a Pod that cannot be read frees
// what it used, which the server does not know.
func TestQuotaOfUnreadablePod(t *testing.T) {
	t.Parallel()
	url := storagetest.StartGRPC(t)
	b := harness.New(t)
	if err := b.StartServer(t.Context(), "--etcd-servers="+url); err != nil {
		t.Fatal(err)
	}
	ns := newNamespace(t, b)
	createQuota(t, b, ns, newQuota("q", "pods=2 requests.cpu=2"))
	for _, name := range []string{"a", "b"} {
		createPod(t, b, ns, newPod(name, withResources(quantities("cpu=1"), nil)))
	}
	flipKeys(t, storagetest.NewClient(t, url), "pods/"+ns+"/a")
	b.Kubectl(t, "delete", "--raw", api+"/namespaces/"+ns+"/pods/a?ignoreStoreReadErrorWithClusterBreakingPotential=true")
	wantUsed(t, b, ns, "q", "pods=1 requests.cpu=1")
	createPod(t, b, ns, newPod("c", withResources(quantities("cpu=1"), nil)))
	wantUsed(t, b, ns, "q", "pods=2 requests.cpu=2")
}

// TestQuotaWhenEtcdIsFull checks that what a quota counts can be deleted after the
// quota.
func TestQuotaWhenEtcdIsFull(t *testing.T) {
	t.Parallel()
	url := storagetest.StartGRPC(t)
	b := harness.New(t)
	if err := b.StartServer(t.Context(), "--etcd-servers="+url); err != nil {
		t.Fatal(err)
	}
	ns := newNamespace(t, b)
	createPod(t, b, ns, newPod("a"))
	createQuota(t, b, ns, newQuota("p", "pods=5 resourcequotas=5"))
	createQuota(t, b, ns, newQuota("q", "pods=5"))
	full := &etcdserverpb.AlarmRequest{Action: etcdserverpb.AlarmRequest_ACTIVATE, Alarm: etcdserverpb.AlarmType_NOSPACE}
	if _, err := etcdserverpb.NewMaintenanceClient(storagetest.NewClient(t, url).ActiveConnection()).Alarm(t.Context(), full); err != nil {
		t.Fatal(err)
	}
	wantCode(t, tryPod(t, b, ns, newPod("b")), 507)
	wantContains(t, b.KubectlFails(t, "delete", "pod", "a", "-n", ns), "StorageFull")
	wantContains(t, b.KubectlFails(t, "delete", "quota", "q", "-n", ns), "StorageFull")
	b.Kubectl(t, "delete", "quota", "p", "-n", ns)
	b.Kubectl(t, "delete", "quota", "q", "-n", ns)
	b.Kubectl(t, "delete", "pod", "a", "-n", ns)
}
