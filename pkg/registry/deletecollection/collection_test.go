// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package deletecollection_test

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metainternalversion "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/borough-io/borough/pkg/apis/tenancy"
	"github.com/borough-io/borough/pkg/registry/deletecollection"
	"github.com/borough-io/borough/pkg/registry/registrytest"
	"github.com/borough-io/borough/pkg/storage"
	"github.com/borough-io/borough/pkg/storage/storagetest"
	"github.com/borough-io/borough/test/leaktest"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

// TestAsKubernetes compares with what the library's DeleteCollection does.
func TestAsKubernetes(t *testing.T) {
	r := registrytest.New(t, storagetest.StartEmbedded(t))
	r.CreatePods(t, 2)
	r.CreatePod(t, "running", registrytest.OnNode)
	events := r.WatchPods(t)
	got, err := r.Pods.DeleteCollection(r.Context, rest.ValidateAllObjectFunc, &metav1.DeleteOptions{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"p00", "p01", "running"}, registrytest.Names(got.(*tenancy.PodList))); diff != "" {
		t.Errorf("the reply (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"running"}, r.PodNames(t)); diff != "" {
		t.Errorf("left (-want +got):\n%s", diff)
	}
	byName := map[string][]watch.EventType{}
	for _, event := range events(2) {
		p := event.Object.(*tenancy.Pod)
		byName[p.Name] = append(byName[p.Name], event.Type)
		if p.DeletionTimestamp == nil {
			t.Errorf("%s of %s without deletionTimestamp", event.Type, p.Name)
		}
	}
	if diff := cmp.Diff([]watch.EventType{watch.Modified, watch.Deleted}, byName["p00"]); diff != "" {
		t.Errorf("events of p00 (-want +got):\n%s", diff)
	}
	if _, err := r.Pods.DeleteCollection(r.Context, rest.ValidateAllObjectFunc, nil, nil); err != nil {
		t.Fatal(err)
	}
	if left := r.PodNames(t); len(left) > 0 {
		t.Errorf("without options, which means at once, %v are left", left)
	}
}

func TestOptions(t *testing.T) {
	member := storagetest.StartEmbedded(t)
	all := []string{"p00", "p01", "p02", "p03", "p04"}
	conflict := func(err error) bool { return apierrors.IsConflict(err) }
	none := func(err error) bool { return err == nil }
	for _, test := range []struct {
		name    string
		options metav1.DeleteOptions
		list    metainternalversion.ListOptions
		wantErr func(error) bool
		reply   []string
		left    []string
	}{
		{name: "label selector", list: metainternalversion.ListOptions{LabelSelector: labels.SelectorFromSet(labels.Set{"name": "p03"})},
			wantErr: none, reply: []string{"p03"}, left: []string{"p00", "p01", "p02", "p04"}},
		{name: "field selector", list: metainternalversion.ListOptions{FieldSelector: fields.OneTermEqualSelector("metadata.name", "p02")},
			wantErr: none, reply: []string{"p02"}, left: []string{"p00", "p01", "p03", "p04"}},
		{name: "limit", list: metainternalversion.ListOptions{Limit: 3},
			wantErr: none, reply: all[:3], left: all[3:]},
		{name: "dry run", options: metav1.DeleteOptions{DryRun: []string{metav1.DryRunAll}},
			wantErr: none, reply: all, left: all},
		{name: "UID precondition", options: metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions("other")},
			wantErr: conflict, left: all},
		{name: "resourceVersion precondition", options: metav1.DeleteOptions{Preconditions: &metav1.Preconditions{ResourceVersion: new("1")}},
			wantErr: conflict, left: all},
		{name: "foreground", options: metav1.DeleteOptions{PropagationPolicy: new(metav1.DeletePropagationForeground)},
			wantErr: none, reply: all, left: all}, // held by a finalizer
		{name: "a resourceVersion that is no number", list: metainternalversion.ListOptions{ResourceVersion: "x"},
			wantErr: func(err error) bool { return apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) }, left: all},
	} {
		t.Run(test.name, func(t *testing.T) {
			r := registrytest.New(t, member, func(o *storage.Options) { o.Etcd.EnableGarbageCollection = true })
			r.CreatePods(t, len(all))
			options := test.options
			if options.PropagationPolicy == nil {
				options.PropagationPolicy = background().PropagationPolicy
			}
			got, err := r.Pods.DeleteCollection(r.Context, rest.ValidateAllObjectFunc, &options, &test.list)
			if !test.wantErr(err) {
				t.Errorf("got the error %v", err)
			}
			if err == nil {
				if diff := cmp.Diff(test.reply, registrytest.Names(got.(*tenancy.PodList))); diff != "" {
					t.Errorf("the reply (-want +got):\n%s", diff)
				}
				if more := got.(*tenancy.PodList).Continue != ""; more != (test.list.Limit > 0) {
					t.Errorf("the reply has the continue token %q", got.(*tenancy.PodList).Continue)
				}
			}
			if diff := cmp.Diff(test.left, r.PodNames(t)); diff != "" {
				t.Errorf("left (-want +got):\n%s", diff)
			}
		})
	}
}

// background returns the options that most clients send.
func background() *metav1.DeleteOptions {
	return &metav1.DeleteOptions{PropagationPolicy: new(metav1.DeletePropagationBackground)}
}

// TestPages deletes a collection of several pages. A resourceVersion of the request is for
// the first one.
func TestPages(t *testing.T) {
	r := registrytest.New(t, storagetest.StartEmbedded(t))
	deleter := deletecollection.Deleter{Store: r.Pods.Store, PageSize: 2}
	for _, match := range []metav1.ResourceVersionMatch{"", metav1.ResourceVersionMatchNotOlderThan} {
		t.Run(string(match), func(t *testing.T) {
			r.CreatePods(t, 5)
			options := &metainternalversion.ListOptions{ResourceVersionMatch: match}
			if match != "" {
				options.ResourceVersion = r.GetPod(t, "p04").ResourceVersion
			}
			got, err := deleter.DeleteCollection(r.Context, rest.ValidateAllObjectFunc, &metav1.DeleteOptions{}, options)
			if err != nil {
				t.Fatal(err)
			}
			list := got.(*tenancy.PodList)
			if len(list.Items) != 5 || list.Continue != "" || list.RemainingItemCount != nil {
				t.Errorf("got %v with %+v", registrytest.Names(list), list.ListMeta)
			}
			if left := r.PodNames(t); len(left) > 0 {
				t.Errorf("%v are left", left)
			}
		})
	}
}

// TestReplaced replaces a Pod between the list and its delete; the new Pod stays.
func TestReplaced(t *testing.T) {
	r := registrytest.New(t, storagetest.StartEmbedded(t))
	r.CreatePods(t, 8)
	var replacement *tenancy.Pod
	var once sync.Once
	validate := func(_ context.Context, obj runtime.Object) error {
		if obj.(*tenancy.Pod).Name == "p04" {
			once.Do(func() {
				if _, _, err := r.Pods.Store.Delete(r.Context, "p04", rest.ValidateAllObjectFunc, metav1.NewDeleteOptions(0)); err != nil {
					t.Error(err)
				}
				replacement = r.CreatePod(t, "p04")
			})
		}
		return nil
	}
	if _, err := r.Pods.DeleteCollection(r.Context, validate, &metav1.DeleteOptions{}, nil); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"p04"}, r.PodNames(t)); diff != "" {
		t.Fatalf("left (-want +got):\n%s", diff)
	}
	if p := r.GetPod(t, "p04"); p.UID != replacement.UID || p.DeletionTimestamp != nil {
		t.Errorf("the replacement was touched: %+v", p.ObjectMeta)
	}
}

// TestGone deletes all Pods between the list and the deletes: that is no error.
func TestGone(t *testing.T) {
	r := registrytest.New(t, storagetest.StartEmbedded(t))
	r.CreatePods(t, 8)
	var once sync.Once
	validate := func(context.Context, runtime.Object) error {
		once.Do(func() {
			for i := range 8 {
				_, _, err := r.Pods.Store.Delete(r.Context, fmt.Sprintf("p%02d", i), rest.ValidateAllObjectFunc, metav1.NewDeleteOptions(0))
				if err != nil && !apierrors.IsNotFound(err) {
					t.Error(err)
				}
			}
		})
		return nil
	}
	if _, err := r.Pods.DeleteCollection(r.Context, validate, background(), nil); err != nil {
		t.Error(err)
	}
}
