// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package pod_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/borough-io/borough/pkg/apis/tenancy"
	v1 "github.com/borough-io/borough/pkg/apis/tenancy/v1"
	"github.com/borough-io/borough/pkg/registry/tenancy/pod"
)

func TestMatch(t *testing.T) {
	p := &tenancy.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "p", Namespace: "ns", Labels: map[string]string{"app": "x"}},
		Spec: corev1.PodSpec{
			NodeName: "node", RestartPolicy: "Never", SchedulerName: "sched", ServiceAccountName: "sa", HostNetwork: true,
		},
		Status: corev1.PodStatus{
			Phase: corev1.PodRunning, NominatedNodeName: "nominated",
			PodIP: "1.2.3.4", PodIPs: []corev1.PodIP{{IP: "1.2.3.4"}, {IP: "2001:db8::1"}},
		},
	}
	want := map[string]string{
		"metadata.name": "p", "metadata.namespace": "ns",
		"spec.nodeName": "node", "spec.restartPolicy": "Never", "spec.schedulerName": "sched",
		"spec.serviceAccountName": "sa", "spec.hostNetwork": "true",
		"status.phase": "Running", "status.nominatedNodeName": "nominated",
		"status.podIP": "1.2.3.4", "status.podIPs": "1.2.3.4,2001:db8::1",
	}
	for name, value := range want {
		if _, _, err := scheme.ConvertFieldLabel(v1.SchemeGroupVersion.WithKind("Pod"), name, value); err != nil {
			t.Errorf("a request can't select by %s: %v", name, err)
		}
		for _, tc := range []struct {
			value string
			match bool
		}{{value, true}, {"other", false}} {
			predicate := pod.Match(labels.Everything(), fields.OneTermEqualSelector(name, tc.value))
			got, err := predicate.Matches(p)
			if err != nil {
				t.Fatal(err)
			}
			if got != tc.match {
				t.Errorf("%s=%s: got %t, want %t", name, tc.value, got, tc.match)
			}
		}
	}
	// The name that the field had once.
	if name, value, err := scheme.ConvertFieldLabel(v1.SchemeGroupVersion.WithKind("Pod"), "spec.host", "node"); err != nil || name != "spec.nodeName" || value != "node" {
		t.Errorf("spec.host=node is %s=%s, error %v", name, value, err)
	}
	_, set, err := pod.GetAttrs(p)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(fields.Set(want), set); diff != "" {
		t.Errorf("selectable fields (-want +got):\n%s", diff)
	}

	empty := &tenancy.Pod{}
	for name := range want {
		value := ""
		if name == "spec.hostNetwork" {
			value = "false"
		}
		for selector, match := range map[fields.Selector]bool{
			fields.OneTermEqualSelector(name, value):    true,
			fields.OneTermNotEqualSelector(name, value): false,
			fields.OneTermEqualSelector(name, "other"):  false,
		} {
			predicate := pod.Match(labels.Everything(), selector)
			if got, err := predicate.Matches(empty); err != nil || got != match {
				t.Errorf("%s selects an empty Pod: %t, %v, want %t", selector, got, err, match)
			}
		}
	}

	for selector, match := range map[string]bool{"app=x": true, "app=y": false} {
		s, err := labels.Parse(selector)
		if err != nil {
			t.Fatal(err)
		}
		predicate := pod.Match(s, fields.Everything())
		if got, err := predicate.Matches(p); err != nil || got != match {
			t.Errorf("label %s: got %t, %v, want %t", selector, got, err, match)
		}
	}

	if _, _, err := pod.GetAttrs(&tenancy.LimitRange{}); err == nil {
		t.Error("a LimitRange has the attributes of a pod")
	}
}

func TestIndex(t *testing.T) {
	p := &tenancy.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "a"}, Spec: corev1.PodSpec{NodeName: "node"}}
	deleted := p.DeepCopy()
	deleted.DeletionTimestamp = &metav1.Time{}
	want := map[string][2][]string{"f:spec.nodeName": {{"node"}, {"node"}}, "f:beingDeletedIn": {nil, {"a"}}}
	if got := len(*pod.Indexers()); got != len(want) {
		t.Errorf("%d indexes, want %d", got, len(want))
	}
	for name, index := range *pod.Indexers() {
		for i, p := range []*tenancy.Pod{p, deleted} {
			got, err := index(p)
			if err != nil || !slices.Equal(got, want[name][i]) {
				t.Errorf("index %s: got %v, %v", name, got, err)
			}
		}
		if _, err := index(&tenancy.LimitRange{}); err == nil {
			t.Error("a LimitRange is indexed as a pod")
		}
	}
	for name, trigger := range pod.Triggers() {
		if got := trigger(p); name != "spec.nodeName" || got != "node" {
			t.Errorf("trigger %s: got %s", name, got)
		}
	}
	if got := pod.Match(labels.Everything(), fields.Everything()).IndexFields; !slices.Equal(got, []string{"spec.nodeName"}) {
		t.Errorf("indexed fields: got %v", got)
	}
}
