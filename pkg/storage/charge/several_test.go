// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package charge_test

import (
	"fmt"
	"sync"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/borough-io/borough/pkg/apis/tenancy"
	"github.com/borough-io/borough/pkg/storage"
)

// usages are the numbers of Pods that quotas count, by their names.
type usages map[string]int64

func (u usages) add(quota *tenancy.ResourceQuota) {
	pods := quota.Status.Used["pods"]
	u[quota.Name] = pods.Value()
}

// TestSeveralQuotas lists two quotas while each Pod charges both, and continues each list
// with a watch.
func TestSeveralQuotas(t *testing.T) {
	f := newPipelineFixture(t)
	f.createQuota("q")
	f.createQuota("r")
	f.create(0, "first") // counts the quotas
	const pods = 150
	created := make(chan struct{})
	go func() {
		defer close(created)
		for i := range pods {
			if err := create(f.ctx, f.servers[0].Pods, newPod(fmt.Sprint("p", i))); err != nil {
				t.Error(err)
				return
			}
		}
	}()
	var watching sync.WaitGroup
	for ended := false; !ended; {
		select {
		case <-created:
			ended = true
		default:
		}
		obj, err := f.servers[1].ResourceQuotas.List(f.ctx, &internalversion.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		list, used := obj.(*tenancy.ResourceQuotaList), usages{}
		for i := range list.Items {
			used.add(&list.Items[i])
		}
		if used["q"] != used["r"] {
			t.Errorf("a list at %s has %v", list.ResourceVersion, used)
		}
		w, err := f.servers[1].ResourceQuotas.Watch(f.ctx, &internalversion.ListOptions{ResourceVersion: list.ResourceVersion})
		if err != nil {
			t.Fatal(err)
		}
		watching.Go(func() {
			defer w.Stop()
			for used["q"] <= pods || used["r"] <= pods {
				used.add(nextQuota(t, w))
			}
		})
	}
	watching.Wait()
}

// TestInitialEvents begins watches with all quotas, or now. They do not get the events of the
// last revision again.
func TestInitialEvents(t *testing.T) {
	for _, cached := range []bool{true, false} {
		t.Run(fmt.Sprintf("watch cache %t", cached), func(t *testing.T) {
			testInitialEvents(t, newPipelineFixture(t, func(o *storage.Options) { o.Etcd.EnableWatchCache = cached }))
		})
	}
}

func testInitialEvents(t *testing.T, f *pipelineFixture) {
	t.Helper()
	f.createQuota("q")
	f.createQuota("r")
	f.create(0, "first") // changes both
	for name, options := range map[string]internalversion.ListOptions{
		"no resourceVersion": {},
		"any version":        {ResourceVersion: "0"},
		"initial events": {
			SendInitialEvents: new(true), ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan, AllowWatchBookmarks: true,
		},
		"now": {SendInitialEvents: new(false), ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan},
	} {
		revision := f.revision()
		w, err := f.servers[1].ResourceQuotas.Watch(f.ctx, &options)
		if err != nil {
			t.Fatal(err)
		}
		// want reads the events of both quotas.
		want := func(want watch.EventType) {
			t.Helper()
			for range 2 {
				event := <-w.ResultChan()
				for event.Type == watch.Bookmark {
					event = <-w.ResultChan()
				}
				object, err := meta.Accessor(event.Object)
				if err != nil || event.Type != want || object.GetResourceVersion() != revision {
					t.Fatalf("%s: %s %v, want %s at revision %s", name, event.Type, event.Object, want, revision)
				}
			}
		}
		if name != "now" {
			want(watch.Added)
		}
		f.create(0, "p"+revision) // changes both again
		revision = f.revision()
		want(watch.Modified)
		w.Stop()
	}
}

// TestResumedWatch continues a watch after the first of two events of a revision.
func TestResumedWatch(t *testing.T) {
	f := newPipelineFixture(t)
	f.createQuota("q")
	f.createQuota("r")
	f.create(0, "first")
	from := f.revision()
	f.create(0, "second")
	for _, server := range f.servers {
		watchFrom := func(revision string) watch.Interface {
			w, err := server.ResourceQuotas.Watch(f.ctx, &internalversion.ListOptions{ResourceVersion: revision})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(w.Stop)
			return w
		}
		var first *tenancy.ResourceQuota
		for w, used := watchFrom(from), (usages{}); used["q"] < 2 && used["r"] < 2; {
			first = nextQuota(t, w)
			used.add(first)
		}
		// This fails if there is no event of the other quota.
		for w, used := watchFrom(first.ResourceVersion), (usages{}); used["q"] < 2 || used["r"] < 2; {
			used.add(nextQuota(t, w))
		}
	}
}
