// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package pod

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metainternalversion "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/watch"
	genericapirequest "k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"
	storagemetrics "k8s.io/apiserver/pkg/storage/metrics"
	"k8s.io/component-base/metrics/legacyregistry"

	"github.com/borough-io/borough/pkg/apis/tenancy"
)

func ofNode(node string) *metainternalversion.ListOptions {
	return &metainternalversion.ListOptions{FieldSelector: fields.OneTermEqualSelector("spec.nodeName", node)}
}

// TestListByNode lists the Pods of a node in all Namespaces, with the index, and in one, without:
// the index has those of all Namespaces.
func TestListByNode(t *testing.T) {
	s := newStorage(t)
	var last *tenancy.Pod
	for i := range 12 {
		last = create(t, s, newPod(t, fmt.Sprintf("p%02d", i), onNode(fmt.Sprintf("n%d", i%4))))
	}
	storagemetrics.Register()
	inOne := newContext(t)
	for name, test := range map[string]struct {
		ctx     context.Context
		fetched float64
	}{
		"all Namespaces": {genericapirequest.WithNamespace(inOne, metav1.NamespaceAll), 3},
		"one Namespace":  {inOne, 0},
	} {
		// A list that names a version is answered by the cache, at any time.
		options := ofNode("n1")
		options.ResourceVersion = last.ResourceVersion
		before := fetchedByNode(t)
		list, err := s.Pod.List(test.ctx, options)
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, p := range list.(*tenancy.PodList).Items {
			names = append(names, p.Name)
		}
		if want := []string{"p01", "p05", "p09"}; !slices.Equal(names, want) {
			t.Errorf("%s: pods of the node: got %v, want %v", name, names, want)
		}
		if got := fetchedByNode(t) - before; got != test.fetched {
			t.Errorf("%s: the index was used to look at %v pods, want %v", name, got, test.fetched)
		}
	}
}

// fetchedByNode returns how many Pods have been looked at by the index of nodes.
func fetchedByNode(t *testing.T) float64 {
	t.Helper()
	families, err := legacyregistry.DefaultGatherer.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		if family.GetName() != "apiserver_storage_list_fetched_objects_total" {
			continue
		}
		for _, metric := range family.GetMetric() {
			labels := map[string]string{}
			for _, label := range metric.GetLabel() {
				labels[label.GetName()] = label.GetValue()
			}
			if labels["resource"] == "pods" && labels["storage"] == storagemetrics.StorageBackendWatchCache && labels["index"] == "f:spec.nodeName" {
				return metric.GetCounter().GetValue()
			}
		}
	}
	return 0
}

func TestWatchByNode(t *testing.T) {
	s := newStorage(t)
	create(t, s, newPod(t, "other", onNode("m")))
	start := create(t, s, newPod(t, "foo"))
	options := ofNode("n")
	options.ResourceVersion = start.ResourceVersion
	w, err := s.Pod.Watch(newContext(t), options)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()

	if _, err := bind(t, s, binding("other", "n")); err == nil {
		t.Fatal("a pod could be bound again")
	}
	if _, err := bind(t, s, binding("foo", "n")); err != nil {
		t.Fatal(err)
	}
	if _, err := update(t, s.Pod, s, "other", func(p *tenancy.Pod) { p.Labels = map[string]string{"a": "b"} }); err != nil {
		t.Fatal(err)
	}
	if _, err := update(t, s.Pod, s, "foo", func(p *tenancy.Pod) { p.Labels = map[string]string{"a": "b"} }); err != nil {
		t.Fatal(err)
	}
	now := int64(0)
	if _, _, err := s.Pod.Delete(newContext(t), "foo", rest.ValidateAllObjectFunc, &metav1.DeleteOptions{GracePeriodSeconds: &now}); err != nil {
		t.Fatal(err)
	}
	// Bound, labelled, marked as deleted, gone.
	for _, want := range []watch.EventType{watch.Added, watch.Modified, watch.Modified, watch.Deleted} {
		event, open := <-w.ResultChan()
		if !open {
			t.Fatalf("the watch ended before %s", want)
		}
		obj, err := meta.Accessor(event.Object)
		if err != nil || event.Type != want || obj.GetName() != "foo" {
			t.Fatalf("got %s %+v, want %s foo", event.Type, event.Object, want)
		}
	}
}
