// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package podsource

import (
	"net/http"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	v1 "github.com/borough-io/borough/pkg/apis/tenancy/v1"
	"github.com/borough-io/borough/pkg/generated/clientset/versioned"
	"github.com/borough-io/borough/pkg/source"
	"github.com/borough-io/borough/test/poll"
)

// TestChanges changes the source, and checks how the Pods follow.
func TestChanges(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.write("a.yaml", newPod("web"), newPod("db"))
	f.start(f.config())
	first := f.expect("web-node-1=image:1", "db-node-1=image:1")
	web := first["web-node-1"]
	if web.Spec.NodeName != "node-1" || web.Labels[source.Label] != f.identity.ID() ||
		web.Annotations[source.KindAnnotation] != "file" || web.Annotations[source.FileAnnotation] != "a.yaml" ||
		web.Annotations[source.UIDAnnotation] != string(f.identity.UID("web")) || web.Annotations[source.HashAnnotation] == "" {
		t.Errorf("got %v", web)
	}
	if _, err := time.Parse(time.RFC3339Nano, web.Annotations[source.SeenAnnotation]); err != nil {
		t.Error(err)
	}

	// What an update allows is an update.
	f.write("a.yaml", newPod("web", image("image:2")), newPod("db"))
	updated := f.expect("web-node-1=image:2", "db-node-1=image:1")["web-node-1"]
	if updated.UID != web.UID || updated.Annotations[source.SeenAnnotation] != web.Annotations[source.SeenAnnotation] ||
		updated.Annotations[source.HashAnnotation] == web.Annotations[source.HashAnnotation] {
		t.Errorf("the Pod was %v, and is %v", web.ObjectMeta, updated.ObjectMeta)
	}

	// Anything else is a replacement after the grace period.
	deleted := f.watchDeletion("db-node-1")
	f.write("a.yaml", newPod("web", image("image:2")), newPod("db", image("image:3"), func(pod *v1.Pod) {
		pod.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "A", Value: "b"}}
	}))
	replaced := f.expect("web-node-1=image:2", "db-node-1=image:3")["db-node-1"]
	if replaced.UID == first["db-node-1"].UID || replaced.Annotations[source.UIDAnnotation] != first["db-node-1"].Annotations[source.UIDAnnotation] {
		t.Errorf("the Pod was %v, and is %v", first["db-node-1"].ObjectMeta, replaced.ObjectMeta)
	}
	if pod := <-deleted; pod.DeletionTimestamp == nil || *pod.DeletionGracePeriodSeconds != 1 {
		t.Errorf("the Pod did not get its grace period: %v", pod.ObjectMeta)
	}

	// A Pod that moves to another file stays.
	f.write("b.yaml", newPod("web", image("image:2")))
	f.expectProblems("b.yaml/web: the file a.yaml has a Pod with the same name")
	f.write("a.yaml", newPod("db", image("image:3"), func(pod *v1.Pod) {
		pod.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "A", Value: "b"}}
	}))
	f.expectProblems()
	poll.Eventually(t, func() string {
		pod := f.pods()["web-node-1"]
		if pod.UID != web.UID || pod.Annotations[source.FileAnnotation] != "b.yaml" {
			return "the Pod is not that of the other file"
		}
		return ""
	})

	f.remove("a.yaml")
	f.expect("web-node-1=image:2")
	f.write("c.yaml", newPod("other"))
	f.expect("web-node-1=image:2", "other-node-1=image:1")
}

// watchDeletion returns a channel that receives the Pod when it is being deleted.
func (f *fixture) watchDeletion(name string) <-chan *v1.Pod {
	f.Helper()
	list, err := f.admin.TenancyV1().Pods(f.namespace).List(f.Context(), metav1.ListOptions{})
	f.must(err)
	watcher, err := f.admin.TenancyV1().Pods(f.namespace).Watch(f.Context(), metav1.ListOptions{ResourceVersion: list.ResourceVersion})
	f.must(err)
	found := make(chan *v1.Pod, 1)
	go func() {
		defer watcher.Stop()
		defer close(found)
		for event := range watcher.ResultChan() {
			if pod, ok := event.Object.(*v1.Pod); ok && pod.Name == name && pod.DeletionTimestamp != nil {
				found <- pod
				return
			}
		}
	}()
	return found
}

// TestKeeps checks that what cannot be read keeps the Pods, also after a restart, and that
// an empty directory does not.
func TestKeeps(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.write("a.yaml", newPod("a"))
	f.write("b.yaml", newPod("b"))
	_, stop := f.start(f.config())
	before := f.expect("a-node-1=image:1", "b-node-1=image:1")

	f.writeText("a.yaml", "kind: [")
	f.write("b.yaml", newPod("b", image("image:2")), newPod("c"))
	f.expect("a-node-1=image:1", "b-node-1=image:2", "c-node-1=image:1")
	f.expectProblems("a.yaml/: document 1: yaml")
	stop()
	f.remove("b.yaml")
	_, stop = f.start(f.config())
	f.expect("a-node-1=image:1")
	f.expectProblems("a.yaml/: document 1: yaml")

	f.must(os.Rename(f.dir, f.dir+".gone"))
	f.expectProblems("/: no such file or directory", "a.yaml/: document 1: yaml")
	stop()
	_, stop = f.start(f.config())
	poll.Eventually(t, func() string {
		if len(f.status().Problems) != 1 {
			return "the missing directory is not a problem"
		}
		return ""
	})
	if pod := f.expect("a-node-1=image:1")["a-node-1"]; pod.UID != before["a-node-1"].UID {
		t.Error("the Pod was replaced")
	}
	stop()
	f.must(os.Rename(f.dir+".gone", f.dir))
	f.remove("a.yaml")
	f.start(f.config())
	f.expect()
	f.expectProblems()
}

// TestTerminatingWhileUnread deletes Pods before and after a restart with a source that cannot
// be read. It is confirmed that they have ended.
func TestTerminatingWhileUnread(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.write("a.yaml", newPod("a"), newPod("b"), newPod("c"))
	_, stop := f.start(f.config())
	f.expect("a-node-1=image:1", "b-node-1=image:1", "c-node-1=image:1")
	stop()
	client := f.admin.TenancyV1().Pods(f.namespace)
	f.must(client.Delete(t.Context(), "a-node-1", metav1.DeleteOptions{}))
	f.writeText("a.yaml", "kind: [")
	f.start(f.config())
	f.expectProblems("a.yaml/: document 1: yaml")
	f.must(client.Delete(t.Context(), "b-node-1", metav1.DeleteOptions{}))
	f.expect("c-node-1=image:1")
}

// TestOthers checks that changes of others are undone, and that what is not from the source
// stays.
func TestOthers(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.write("a.yaml", newPod("a"))
	f.start(f.config())
	before := f.expect("a-node-1=image:1")
	client := f.admin.TenancyV1().Pods(f.namespace)

	_, err := client.Create(t.Context(), newPod("other"), metav1.CreateOptions{})
	f.must(err)
	_, err = client.Create(t.Context(), newPod("b-node-1"), metav1.CreateOptions{})
	f.must(err)
	patch := `{"metadata":{"labels":{"by":"others"}},"spec":{"containers":[{"name":"c","image":"image:9"}]}}`
	_, err = client.Patch(t.Context(), "a-node-1", types.StrategicMergePatchType, []byte(patch), metav1.PatchOptions{})
	f.must(err)
	pod := f.expect("a-node-1=image:1", "other=image:1", "b-node-1=image:1")["a-node-1"]
	if pod.Labels["by"] != "others" {
		t.Error("a label of others was removed")
	}
	f.write("b.yaml", newPod("b", image("image:2")))
	f.expectProblems("b.yaml/b: there is a Pod b-node-1 that is not from this source")
	f.expect("a-node-1=image:1", "other=image:1", "b-node-1=image:1")
	if err := f.new(f.config()).Converge(t.Context()); err == nil || !strings.Contains(err.Error(), "not from this source") {
		t.Errorf("Converge returns %v", err)
	}
	f.must(client.Delete(t.Context(), "b-node-1", metav1.DeleteOptions{}))
	f.expect("a-node-1=image:1", "other=image:1", "b-node-1=image:2")
	f.expectProblems()

	f.must(client.Delete(t.Context(), "a-node-1", metav1.DeleteOptions{}))
	f.expectCreatedAgain(before["a-node-1"])
}

// TestNamespaceIsDeleted deletes the Namespace. It is gone after the grace periods of the Pods,
// and is created again with them.
func TestNamespaceIsDeleted(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.write("a.yaml", newPod("a"))
	config := f.config()
	config.LeaderElection = leaderElection
	f.start(config)
	before := f.expect("a-node-1=image:1")["a-node-1"]
	f.must(f.admin.TenancyV1().Namespaces().Delete(t.Context(), f.namespace, metav1.DeleteOptions{}))
	f.expectCreatedAgain(before)
}

// TestRights checks that the user of a source has no rights outside of its Namespace.
func TestRights(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.write("a.yaml", newPod("a"))
	f.start(f.config())
	f.expect("a-node-1=image:1")
	client, err := versioned.NewForConfig(f.server.As(t, "source-"+f.identity.ID(), group))
	f.must(err)
	other := f.server.Namespace(t)
	tenancy := client.TenancyV1()
	_, podErr := tenancy.Pods(other).Create(t.Context(), newPod("x"), metav1.CreateOptions{})
	_, listErr := tenancy.Pods(other).List(t.Context(), metav1.ListOptions{})
	_, createErr := tenancy.Namespaces().Create(t.Context(), &v1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "x"}}, metav1.CreateOptions{})
	_, patchErr := tenancy.Namespaces().Patch(t.Context(), other, types.MergePatchType, []byte(`{"metadata":{"labels":{"a":"b"}}}`), metav1.PatchOptions{})
	for what, err := range map[string]error{
		"create a Pod": podErr, "list Pods": listErr, "create a Namespace": createErr, "patch a Namespace": patchErr,
		"delete a Namespace": tenancy.Namespaces().Delete(t.Context(), other, metav1.DeleteOptions{}),
	} {
		if !apierrors.IsForbidden(err) {
			t.Errorf("%s: got %v, want 403", what, err)
		}
	}
	list, err := tenancy.Namespaces().List(t.Context(), metav1.ListOptions{})
	if err != nil || len(list.Items) != 1 || list.Items[0].Name != f.namespace {
		t.Errorf("the user sees the Namespaces %v, %v", list.Items, err)
	}
}

// TestOneOfTwo starts two controllers for a source. The second waits until the first has
// ended.
func TestOneOfTwo(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.write("a.yaml", newPod("a"))
	config := f.config()
	config.LeaderElection = steadyLeaderElection
	_, stop := f.start(config)
	f.expect("a-node-1=image:1")

	var writes atomic.Int32 // to Pods, by the second controller
	f.wrap = func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(req *http.Request) (*http.Response, error) {
			if req.Method != http.MethodGet && strings.Contains(req.URL.Path, "/pods") {
				writes.Add(1)
			}
			return next.RoundTrip(req)
		})
	}
	second, _ := f.start(config)
	f.expectReady(second)
	f.wrap = nil
	third := f.config()
	third.LeaderElection = leaderElection
	third.LeaderElection.LeaseDuration.Duration = 5 * time.Second // Converge waits so long, and has to read the Lease
	if err := f.new(third).Converge(t.Context()); err == nil || !strings.HasSuffix(err.Error(), f.leaseName()+" within 5.3s: another process writes for the source") {
		t.Errorf("a third process converged, or ended with: %v", err)
	}
	f.write("a.yaml", newPod("a", image("image:2")))
	managed := f.expect("a-node-1=image:2")["a-node-1"].ManagedFields
	if len(managed) != 1 {
		t.Errorf("the Pod has the managers %v", managed)
	}
	if n := writes.Load(); n > 0 {
		t.Errorf("the controller that waits has made %d writes", n)
	}
	stop()
	f.write("a.yaml", newPod("a", image("image:3")))
	f.expect("a-node-1=image:3")
}

// TestLeaseIsLost gives the Lease to another process that does not renew it. The controller
// stops writing, and continues when the Lease has expired.
func TestLeaseIsLost(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.write("a.yaml", newPod("a"))
	config := f.config()
	config.LeaderElection = leaderElection
	f.start(config)
	f.expect("a-node-1=image:1")

	f.takeLease()
	poll.Eventually(t, func() string {
		if *f.lease().Spec.HolderIdentity == "other" {
			return "the Lease is held by the other process"
		}
		return ""
	})
	f.write("a.yaml", newPod("a", image("image:2")))
	f.expect("a-node-1=image:2")
}
