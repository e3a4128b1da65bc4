// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package podsource

import (
	"fmt"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	v1 "github.com/borough-io/borough/pkg/apis/tenancy/v1"
	"github.com/borough-io/borough/pkg/source"
)

// newSession returns a session that does nothing by itself, in a Namespace with the Pod
// a-node-1 of the source.
func newSession(t *testing.T) (*fixture, *session) {
	t.Helper()
	f := newFixture(t)
	f.write("a.yaml", newPod("a"))
	_, stop := f.start(f.config())
	f.expect("a-node-1=image:1")
	stop()
	s, err := f.new(f.config()).newSession("", func(error) {})
	f.must(err)
	t.Cleanup(s.queue.ShutDown)
	return f, s
}

// cache adds a Pod to the cache of the session, and returns it.
func (f *fixture) cache(s *session, name string) *unstructured.Unstructured {
	f.Helper()
	pod, err := s.podClient.Get(f.Context(), name, metav1.GetOptions{})
	f.must(err)
	f.must(s.pods.GetStore().Add(pod))
	return pod
}

// read lets the session read the source.
func (f *fixture) read(s *session) {
	content, err := s.config.Reader.Read(f.Context())
	s.handle(f.Context(), content, err)
}

// TestStaleCache changes the source while the cache still has the Pod of the source. It was
// deleted, and another user has created a Pod with its name, which stays as it is.
func TestStaleCache(t *testing.T) {
	t.Parallel()
	f, s := newSession(t)
	mine := f.cache(s, "a-node-1")

	client := f.admin.TenancyV1().Pods(f.namespace)
	f.must(client.Delete(t.Context(), "a-node-1", metav1.DeleteOptions{GracePeriodSeconds: new(int64(0))}))
	f.write("a.yaml", newPod("a", image("image:2")))
	f.read(s)
	if err := s.sync(t.Context(), "a-node-1"); !apierrors.IsConflict(err) {
		t.Errorf("without the Pod, sync returns %v, want a conflict", err)
	}
	theirs, err := client.Create(t.Context(), newPod("a-node-1"), metav1.CreateOptions{})
	f.must(err)
	f.must(s.sync(t.Context(), "a-node-1"))
	if pod := f.pods()["a-node-1"]; pod.ResourceVersion != theirs.ResourceVersion {
		t.Errorf("the Pod of the other user was %v, and is %v", theirs, pod)
	}

	f.must(s.pods.GetStore().Delete(mine))
	if err := s.sync(t.Context(), "a-node-1"); !isNotOwned(err) {
		t.Errorf("after the event, sync returns %v", err)
	}
}

// TestLabelIsRemoved removes a Pod from the source while the cache still has the label of the
// source, which a user has removed. The Pod stays.
func TestLabelIsRemoved(t *testing.T) {
	t.Parallel()
	f, s := newSession(t)
	f.cache(s, "a-node-1")
	patch := fmt.Appendf(nil, `{"metadata":{"labels":{%q:null}}}`, source.Label)
	_, err := f.admin.TenancyV1().Pods(f.namespace).Patch(t.Context(), "a-node-1", types.MergePatchType, patch, metav1.PatchOptions{})
	f.must(err)
	f.remove("a.yaml")
	f.read(s)
	f.must(s.sync(t.Context(), "a-node-1"))
	if pod, exists := f.pods()["a-node-1"]; !exists || pod.DeletionTimestamp != nil {
		t.Errorf("the Pod was deleted: %v", pod.ObjectMeta)
	}
}

// TestLabelIsAdded sets the label of the source on Pods of others, as a user who may only
// update their status can. They stay.
func TestLabelIsAdded(t *testing.T) {
	t.Parallel()
	f, s := newSession(t)
	f.read(s)
	patch := fmt.Appendf(nil, `{"metadata":{"labels":{%q:%q}}}`, source.Label, s.source.ID())
	for name, node := range map[string]string{"other": "", "other-node-1": "", "other-node-2": "node-2", "b": "node-1"} {
		pod := newPod(name)
		pod.Spec.NodeName = node
		_, err := f.admin.TenancyV1().Pods(f.namespace).Create(t.Context(), pod, metav1.CreateOptions{})
		f.must(err)
		_, err = f.admin.TenancyV1().Pods(f.namespace).Patch(t.Context(), name, types.MergePatchType, patch, metav1.PatchOptions{}, "status")
		f.must(err)
		f.cache(s, name)
		f.must(s.sync(t.Context(), name))
		if pod, exists := f.pods()[name]; !exists || pod.DeletionTimestamp != nil {
			t.Errorf("the Pod %s was deleted", name)
		}
	}
	own, err := s.listPods(t.Context())
	if err != nil || len(own) != 1 || own["a-node-1"] == nil {
		t.Errorf("the Pods of the source are %v, error %v", own, err)
	}
}

// TestCreateTogether creates a Pod that another source has created at the same time. That one
// stays as it is.
func TestCreateTogether(t *testing.T) {
	t.Parallel()
	f, s := newSession(t)
	f.write("b.yaml", newPod("b", image("image:2")))
	f.read(s)
	pod, _ := s.desired.get("b-node-1", nil)

	other := newPod("b-node-1")
	other.Labels = map[string]string{source.Label: "another"}
	theirs, err := f.admin.TenancyV1().Pods(f.namespace).Create(t.Context(), other, metav1.CreateOptions{})
	f.must(err)
	if err := s.write(t.Context(), pod, nil); !apierrors.IsConflict(err) {
		t.Errorf("got %v, want a conflict", err)
	}
	if pod := f.pods()["b-node-1"]; pod.ResourceVersion != theirs.ResourceVersion {
		t.Errorf("the Pod of the other source was %v, and is %v", theirs, pod)
	}
	if err := s.sync(t.Context(), "b-node-1"); !isNotOwned(err) {
		t.Errorf("the next attempt returns %v", err)
	}
}

// TestNamespaceIsAnother shows a session another Namespace with the name of its own, as after a
// watch that has missed the deletion. It ends.
func TestNamespaceIsAnother(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	var ended error
	end := func(cause error) { ended = cause }
	s, err := f.new(f.config()).newSession("old", end)
	f.must(err)
	t.Cleanup(s.queue.ShutDown)
	s.checkNamespace(&v1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: f.namespace, UID: "new"}}, end)
	if ended != errNamespaceGone {
		t.Errorf("the session has ended with %v", ended)
	}
}
