// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	v1 "github.com/borough-io/borough/pkg/apis/tenancy/v1"
	"github.com/borough-io/borough/pkg/storage/embedded"
	"github.com/borough-io/borough/pkg/storage/storagetest"
	"github.com/borough-io/borough/test/harness"
	"github.com/borough-io/borough/test/poll"
)

// inEtcd is the prefix of all keys.
const inEtcd = "/registry/tenancy.borough.io/"

// flipKeys flips a byte in the value of each key.
func flipKeys(t *testing.T, client *clientv3.Client, keys ...string) {
	t.Helper()
	for _, key := range keys {
		response, err := client.Get(t.Context(), inEtcd+key)
		if err != nil || len(response.Kvs) != 1 {
			t.Fatalf("read %s: %v", key, err)
		}
		value := response.Kvs[0].Value
		value[0] ^= 0x40
		if _, err := client.Put(t.Context(), inEtcd+key, string(value)); err != nil {
			t.Fatal(err)
		}
	}
}

// TestUnreadable corrupts a Namespace, and a Pod and a LimitRange in two other
// Namespaces: in the embedded etcd before the server starts, and in an external
// etcd while the server runs.
func TestUnreadable(t *testing.T) {
	t.Parallel()
	for _, cache := range []bool{true, false} {
		flag := fmt.Sprintf("--watch-cache=%t", cache)
		t.Run("before start "+flag, func(t *testing.T) {
			t.Parallel()
			b := harness.New(t)
			testUnreadable(t, b, []string{flag}, func(keys ...string) {
				flipStopped(t, b, keys...)
				if err := b.StartServer(t.Context(), flag); err != nil {
					t.Fatal(err)
				}
				if err := b.StartController(t.Context()); err != nil {
					t.Fatal(err)
				}
			})
		})
		t.Run("while running "+flag, func(t *testing.T) {
			t.Parallel()
			url := storagetest.StartGRPC(t)
			client := storagetest.NewClient(t, url)
			testUnreadable(t, harness.New(t), []string{flag, "--etcd-servers=" + url}, func(keys ...string) { flipKeys(t, client, keys...) })
		})
	}
}

// startWithEtcd starts a server and a controller, and returns a client of its etcd.
func startWithEtcd(t *testing.T) (*harness.Borough, *clientv3.Client) {
	t.Helper()
	url := storagetest.StartGRPC(t)
	b := harness.New(t)
	if err := b.StartServer(t.Context(), "--etcd-servers="+url); err != nil {
		t.Fatal(err)
	}
	if err := b.StartController(t.Context()); err != nil {
		t.Fatal(err)
	}
	return b, storagetest.NewClient(t, url)
}

// TestUnreadablePodStopsPurge deletes a Namespace with a Pod that cannot be read, which may run. What
// is deleted after Pods stays until it is removed, and the status says why.
func TestUnreadablePodStopsPurge(t *testing.T) {
	t.Parallel()
	b, client := startWithEtcd(t)
	ns := newNamespace(t, b)
	createPod(t, b, ns, newPod("sound"))
	createPod(t, b, ns, newPod("bad"))
	createLimitRange(t, b, ns, newLimitRange("l", corev1.LimitRangeItem{Type: corev1.LimitTypePod, Max: quantities("cpu=1")}))
	flipKeys(t, client, "pods/"+ns+"/bad")
	b.Kubectl(t, "delete", "ns", ns, "--wait=false")
	want := fmt.Sprintf(`pods.tenancy.borough.io ["bad"] in the namespace %q cannot be read from storage`, ns)
	poll.Eventually(t, func() string {
		got, err := b.Client(t).TenancyV1().Namespaces().Get(t.Context(), ns, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		i := slices.IndexFunc(got.Status.Conditions, func(c v1.NamespaceCondition) bool { return c.Type == v1.NamespaceDeletionContentFailure })
		if i < 0 || got.Status.Conditions[i].Status != corev1.ConditionTrue || !strings.Contains(got.Status.Conditions[i].Message, want) {
			return fmt.Sprintf("conditions: %+v", got.Status.Conditions)
		}
		return ""
	})
	if list, err := b.Client(t).TenancyV1().LimitRanges(ns).List(t.Context(), metav1.ListOptions{}); err != nil || len(list.Items) != 1 {
		t.Errorf("the LimitRange was deleted: %v, %v", list, err)
	}
	if list, err := b.Client(t).TenancyV1().Pods(ns).List(t.Context(), metav1.ListOptions{}); err != nil || len(list.Items) > 0 {
		t.Errorf("the other Pod was not deleted: %v, %v", list, err)
	}
	unsafely := []byte(`{"ignoreStoreReadErrorWithClusterBreakingPotential":true}`)
	wantAnswer(t, b.HTTP(t).Do(t, "DELETE", api+"/namespaces/"+ns+"/pods/bad", unsafely), 200)
	poll.Eventually(t, gone(t, b, ns))
}

// TestUnreadableContentHolds deletes a Namespace that another agent holds, and whose last content, a Role,
// cannot be read. The controller does not take the Namespace for empty.
func TestUnreadableContentHolds(t *testing.T) {
	t.Parallel()
	b, client := startWithEtcd(t)
	namespaces := b.Client(t).TenancyV1().Namespaces()
	const ns, other = "held", "example.com/other"
	held := &v1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: ns}, Spec: v1.NamespaceSpec{Finalizers: []v1.FinalizerName{other}}}
	if _, err := namespaces.Create(t.Context(), held, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := client.Put(t.Context(), "/registry/rbac.authorization.k8s.io/roles/"+ns+"/bad", "unreadable"); err != nil {
		t.Fatal(err)
	}
	b.Kubectl(t, "delete", "ns", ns, "--wait=false")
	poll.Eventually(t, func() string {
		got, err := namespaces.Get(t.Context(), ns, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(got.Spec.Finalizers, []v1.FinalizerName{other, v1.FinalizerKubernetes}) {
			t.Fatalf("the controller has removed its finalizer: %v, conditions: %+v", got.Spec.Finalizers, got.Status.Conditions)
		}
		statuses := map[v1.NamespaceConditionType]corev1.ConditionStatus{}
		for _, c := range got.Status.Conditions {
			statuses[c.Type] = c.Status
		}
		if statuses[v1.NamespaceContentRemaining] != corev1.ConditionUnknown || statuses[v1.NamespaceFinalizersRemaining] != corev1.ConditionUnknown ||
			statuses[v1.NamespaceDeletionContentFailure] != corev1.ConditionTrue {
			return fmt.Sprintf("conditions: %+v", got.Status.Conditions)
		}
		return ""
	})
	if _, err := client.Delete(t.Context(), "/registry/rbac.authorization.k8s.io/roles/"+ns+"/bad"); err != nil {
		t.Fatal(err)
	}
	poll.Eventually(t, func() string {
		got, err := namespaces.Get(t.Context(), ns, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(got.Spec.Finalizers, []v1.FinalizerName{other}) {
			return fmt.Sprintf("without the Role: finalizers %v, conditions: %+v", got.Spec.Finalizers, got.Status.Conditions)
		}
		return ""
	})
}

// flipStopped stops the processes, and damages values in the embedded etcd.
func flipStopped(t *testing.T, b *harness.Borough, keys ...string) {
	t.Helper()
	if err := b.Stop(); err != nil {
		t.Fatal(err)
	}
	etcd, err := embedded.Start(t.Context(), embedded.Config{Dir: filepath.Join(b.Dir, "etcd")})
	if err != nil {
		t.Fatal(err)
	}
	flipKeys(t, etcd.Client(), keys...)
	if err := etcd.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestUnreadableDefault checks that a server becomes ready if the Namespace that it
// creates when there is none cannot be read.
func TestUnreadableDefault(t *testing.T) {
	t.Parallel()
	b := harness.New(t)
	if err := b.StartServer(t.Context()); err != nil {
		t.Fatal(err)
	}
	flipStopped(t, b, "namespaces/default")
	if err := b.StartServer(t.Context()); err != nil { // waits until it is ready
		t.Fatal(err)
	}
	_, err := b.Client(t).TenancyV1().Namespaces().Get(t.Context(), "default", metav1.GetOptions{})
	if !apierrors.IsStoreReadError(err) {
		t.Errorf("got %v, want an error that the Namespace cannot be read", err)
	}
}

func testUnreadable(t *testing.T, b *harness.Borough, flags []string, flip func(keys ...string)) {
	if err := b.StartServer(t.Context(), flags...); err != nil {
		t.Fatal(err)
	}
	if err := b.StartController(t.Context()); err != nil {
		t.Fatal(err)
	}
	create := func(name string) {
		t.Helper()
		if _, err := b.Client(t).TenancyV1().Namespaces().Create(t.Context(), &v1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	for _, ns := range []string{"bad", "pods", "limits", "sound"} {
		create(ns)
		createPod(t, b, ns, newPod("old"))
	}
	createPod(t, b, "pods", newPod("bad"))
	createLimitRange(t, b, "limits", newLimitRange("bad", corev1.LimitRangeItem{Type: corev1.LimitTypePod, Max: quantities("cpu=1")}))
	flip("namespaces/bad", "pods/pods/bad", "limitranges/limits/bad")
	h := b.HTTP(t)

	// Metrics, health checks and the log report the unreadable objects.
	metric := func(resource string, n int) string {
		return fmt.Sprintf("borough_storage_unreadable_objects{group=%q,resource=%q} %d\n", "tenancy.borough.io", resource, n)
	}
	b.Kubectl(t, "get", "pods,limits", "-A") // without a watch cache, the server has read no object yet
	poll.Eventually(t, func() string {
		metrics := string(wantAnswer(t, h.Do(t, "GET", "/metrics", nil), 200).Body)
		for _, resource := range []string{"namespaces", "pods", "limitranges"} {
			if !strings.Contains(metrics, metric(resource, 1)) {
				return "missing: " + metric(resource, 1)
			}
		}
		return ""
	})
	wantContains(t, b.Kubectl(t, "get", "--raw", "/readyz?verbose"), "readyz check passed",
		"[!]unreadable-objects pods.tenancy.borough.io: 1\n   "+inEtcd+"pods/pods/bad: ",
		"[!]unreadable-objects namespaces.tenancy.borough.io: 1\n   "+inEtcd+"namespaces/bad: ")
	wantContains(t, b.Kubectl(t, "get", "--raw", "/readyz/unreadable-objects"), inEtcd+"limitranges/limits/bad: ")
	// Only authorized users can read the keys.
	anonymous := harness.NewHTTP(t, rest.AnonymousClientConfig(b.Config(t, "admin")))
	answer := wantAnswer(t, anonymous.Do(t, "GET", "/readyz?verbose", nil), 200)
	if body := string(answer.Body); !strings.Contains(body, "[!]unreadable-objects pods.tenancy.borough.io: 1\n") || strings.Contains(body, inEtcd) {
		t.Errorf("/readyz?verbose without credentials: got\n%s", body)
	}
	wantAnswer(t, anonymous.Do(t, "GET", "/readyz/unreadable-objects", nil), 403)
	for _, key := range []string{"namespaces/bad", "pods/pods/bad", "limitranges/limits/bad"} {
		if n := strings.Count(b.Server.Output(), `left out of lists and watches" resource="`+strings.Split(key, "/")[0]+`.tenancy.borough.io" key="`+inEtcd+key+`"`); n != 1 {
			t.Errorf("%s was logged %d times", key, n)
		}
	}

	// Other objects can be read and written.
	wantEqual(t, "Namespaces", rows(b.Kubectl(t, "get", "ns", "-o", "name")), []string{
		"namespace/default", "namespace/limits", "namespace/pods", "namespace/sound"})
	wantEqual(t, "Pods", rows(b.Kubectl(t, "get", "pods", "-n", "pods", "-o", "name")), []string{"pod/old"})
	wantEqual(t, "Pods of the bad Namespace", rows(b.Kubectl(t, "get", "pods", "-n", "bad", "-o", "name")), []string{"pod/old"})
	for _, ns := range []string{"pods", "sound"} {
		createPod(t, b, ns, newPod("new"))
	}
	for path, key := range map[string]string{
		"/namespaces/bad":                    "namespaces/bad",
		"/namespaces/pods/pods/bad":          "pods/pods/bad",
		"/namespaces/limits/limitranges/bad": "limitranges/limits/bad",
	} {
		for _, method := range []string{"GET", "DELETE"} {
			answer := h.Do(t, method, api+path, nil)
			wantStatus(t, answer, 500, "cannot be read from storage, where its key is "+inEtcd+key)
			wantEqual(t, "reason", answer.Status().Reason, metav1.StatusReasonStoreReadError)
		}
		patch := []byte(`{"metadata":{"labels":{"a":"b"}}}`)
		wantStatus(t, h.Do(t, "PATCH", api+path, patch, "Content-Type", "application/merge-patch+json"), 500, inEtcd+key)
	}
	wantStatus(t, h.Do(t, "POST", api+"/namespaces", toJSON(t, &v1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "bad"}})), 409, "already exists")
	pod := toJSON(t, newPod("new"))
	wantStatus(t, h.Do(t, "POST", api+"/namespaces/bad/pods", pod), 500, `namespaces.tenancy.borough.io "bad" cannot be read from storage`)
	wantStatus(t, h.Do(t, "POST", api+"/namespaces/limits/pods", pod), 500, `limit range "bad" of namespace "limits" applies to the pod, but cannot be read`)
	status := []byte(`{"status":{"message":"still here"}}`)
	wantAnswer(t, h.Do(t, "PATCH", api+"/namespaces/bad/pods/old/status", status, "Content-Type", "application/merge-patch+json"), 200)

	// Other Namespaces are deleted. One with an unreadable object stays
	// Terminating, and its conditions say so.
	b.Kubectl(t, "delete", "ns", "sound")
	b.Kubectl(t, "delete", "ns", "pods", "--wait=false")
	poll.Eventually(t, func() string {
		if got := b.Kubectl(t, "get", "ns", "pods", "-o", "jsonpath={.status.conditions}"); !strings.Contains(got, "ContentUnknown") {
			return "conditions: " + got
		}
		return ""
	})

	// An unreadable object can be deleted.
	unsafely := []byte(`{"ignoreStoreReadErrorWithClusterBreakingPotential":true}`)
	answer = h.Do(t, "DELETE", api+"/namespaces/bad", unsafely)
	wantStatus(t, answer, 409, "there is content left in it: pods.tenancy.borough.io")
	wantAnswer(t, h.Do(t, "DELETE", api+"/namespaces/bad/pods", nil), 200)
	wantAnswer(t, h.Do(t, "DELETE", api+"/namespaces/bad", unsafely), 200)
	// A user needs a verb of its own for that.
	bad := api + "/namespaces/pods/pods/bad"
	grant(t, b, "", "edit", "editor")
	wantStatus(t, as(t, b, "editor").Do(t, "DELETE", bad, unsafely), 403, "unsafe-delete-ignore-read-errors")
	wantStatus(t, h.Do(t, "GET", bad, nil), 500, "cannot be read from storage")
	grantRule(t, b, "operator", rbacv1.PolicyRule{Verbs: []string{"delete", "unsafe-delete-ignore-read-errors"}, APIGroups: []string{v1.GroupName}, Resources: []string{"pods"}})
	wantAnswer(t, as(t, b, "operator").Do(t, "DELETE", bad, unsafely), 200)
	wantContains(t, b.Kubectl(t, "delete", "--raw", api+"/namespaces/limits/limitranges/bad?ignoreStoreReadErrorWithClusterBreakingPotential=true"), "Success")
	poll.Eventually(t, gone(t, b, "pods"))
	create("bad")
	for _, ns := range []string{"bad", "limits"} {
		createPod(t, b, ns, newPod("new"))
	}
	wantContains(t, b.Kubectl(t, "get", "--raw", "/readyz?verbose"), "[+]unreadable-objects none")
	metrics := string(wantAnswer(t, h.Do(t, "GET", "/metrics", nil), 200).Body)
	wantContains(t, metrics, metric("namespaces", 0), metric("pods", 0), metric("limitranges", 0))
}
