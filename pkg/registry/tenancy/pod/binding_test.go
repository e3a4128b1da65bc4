// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package pod

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/borough-io/borough/pkg/apis/tenancy"
	v1 "github.com/borough-io/borough/pkg/apis/tenancy/v1"
)

func binding(name, node string, modify ...func(*tenancy.Binding)) *tenancy.Binding {
	b := &tenancy.Binding{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace},
		Target:     corev1.ObjectReference{Name: node},
	}
	for _, m := range modify {
		m(b)
	}
	return b
}

func bind(t *testing.T, s Storage, b *tenancy.Binding) (runtime.Object, error) {
	t.Helper()
	return s.Binding.Create(newContext(t), b.Name, b, rest.ValidateAllObjectFunc, &metav1.CreateOptions{})
}

func TestBinding(t *testing.T) {
	s := newStorage(t)
	create(t, s, newPod(t, "foo", func(p *v1.Pod) {
		p.Labels = map[string]string{"kept": "1", "changed": "old"}
		p.Annotations = map[string]string{"kept": "1", "changed": "old"}
	}))
	if _, err := update(t, s.Status, s, "foo", func(p *tenancy.Pod) { p.Status.NominatedNodeName = "other" }); err != nil {
		t.Fatal(err)
	}

	more := map[string]string{"changed": "new", "added": "1"}
	reply, err := bind(t, s, binding("foo", "node", func(b *tenancy.Binding) { b.Labels, b.Annotations = more, more }))
	if err != nil {
		t.Fatal(err)
	}
	if status, ok := reply.(*metav1.Status); !ok || status.Status != metav1.StatusSuccess {
		t.Errorf("reply: %+v", reply)
	}

	p := get(t, s, "foo")
	if p.Spec.NodeName != "node" || p.Status.NominatedNodeName != "" {
		t.Errorf("node %q, nominated %q", p.Spec.NodeName, p.Status.NominatedNodeName)
	}
	want := map[string]string{"kept": "1", "changed": "new", "added": "1"}
	if diff := cmp.Diff(want, p.Labels); diff != "" {
		t.Errorf("labels (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(want, p.Annotations); diff != "" {
		t.Errorf("annotations (-want +got):\n%s", diff)
	}
	if len(p.Status.Conditions) != 1 {
		t.Fatalf("conditions: %+v", p.Status.Conditions)
	}
	if c := p.Status.Conditions[0]; c.Type != corev1.PodScheduled || c.Status != corev1.ConditionTrue || c.LastTransitionTime.IsZero() {
		t.Errorf("condition: %+v", c)
	}
}

func TestBindingFails(t *testing.T) {
	s := newStorage(t)
	free := create(t, s, newPod(t, "free"))
	create(t, s, newPod(t, "assigned", onNode("n")))
	create(t, s, newPod(t, "gated", func(p *v1.Pod) { p.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "g"}} }))
	create(t, s, newPod(t, "deleted", func(p *v1.Pod) { p.Finalizers = []string{"example.com/hold"} }))
	if _, _, err := s.Pod.Delete(newContext(t), "deleted", rest.ValidateAllObjectFunc, &metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}

	for _, tc := range []struct {
		name    string
		binding *tenancy.Binding
		is      func(error) bool
		message string
	}{
		{"no such pod", binding("none", "n"), apierrors.IsNotFound, `pods.tenancy.borough.io "none" not found`},
		{"assigned", binding("assigned", "m"), apierrors.IsConflict, `pod assigned is already assigned to node "n"`},
		{"gated", binding("gated", "n"), apierrors.IsConflict, "pod gated has non-empty .spec.schedulingGates"},
		{"deleted", binding("deleted", "n"), apierrors.IsConflict, "pod deleted is being deleted, cannot be assigned to a host"},
		{"no node", binding("free", ""), apierrors.IsInvalid, "target.name: Required value"},
		{"not a node", binding("free", "n", func(b *tenancy.Binding) { b.Target.Kind = "Pod" }), apierrors.IsInvalid, "target.kind: Unsupported value"},
		{"another incarnation", binding("free", "n", func(b *tenancy.Binding) { b.UID = "other" }), apierrors.IsConflict, "UID in precondition: other"},
		{"an old version", binding("free", "n", func(b *tenancy.Binding) { b.ResourceVersion = "1" }), apierrors.IsConflict, "ResourceVersion in precondition: 1"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, err := bind(t, s, tc.binding)
			if !tc.is(err) || !strings.Contains(err.Error(), tc.message) {
				t.Errorf("got %v, want it to contain %q", err, tc.message)
			}
		})
	}
	t.Run("another name in the path", func(t *testing.T) {
		_, err := s.Binding.Create(newContext(t), "other", binding("free", "n"), rest.ValidateAllObjectFunc, &metav1.CreateOptions{})
		if !apierrors.IsBadRequest(err) {
			t.Errorf("got %v, want bad request", err)
		}
	})
	t.Run("not a binding", func(t *testing.T) {
		_, err := s.Binding.Create(newContext(t), "free", &tenancy.Pod{}, rest.ValidateAllObjectFunc, &metav1.CreateOptions{})
		if !apierrors.IsBadRequest(err) {
			t.Errorf("got %v, want bad request", err)
		}
	})
	t.Run("admission", func(t *testing.T) {
		refusal := errors.New("no")
		reject := func(context.Context, runtime.Object) error { return refusal }
		if _, err := s.Binding.Create(newContext(t), "free", binding("free", "n"), reject, &metav1.CreateOptions{}); !errors.Is(err, refusal) {
			t.Errorf("got %v, want the refusal", err)
		}
	})
	t.Run("dry run", func(t *testing.T) {
		options := &metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}
		if _, err := s.Binding.Create(newContext(t), "free", binding("free", "n"), rest.ValidateAllObjectFunc, options); err != nil {
			t.Error(err)
		}
	})

	if got := get(t, s, "free"); got.Spec.NodeName != "" || got.ResourceVersion != free.ResourceVersion {
		t.Errorf("one of these has changed the pod: %+v", got)
	}
	matching := binding("free", "n", func(b *tenancy.Binding) { b.UID, b.ResourceVersion = free.UID, free.ResourceVersion })
	if _, err := bind(t, s, matching); err != nil {
		t.Errorf("with preconditions that hold: %v", err)
	}
}
