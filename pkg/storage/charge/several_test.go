// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package charge_test

import (
	"fmt"
	"sync"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/borough-io/borough/pkg/apis/tenancy"
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
