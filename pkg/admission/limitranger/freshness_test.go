// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package limitranger_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/admission"
	clienttesting "k8s.io/client-go/testing"

	v1 "github.com/borough-io/borough/pkg/apis/tenancy/v1"
	"github.com/borough-io/borough/pkg/generated/clientset/versioned/fake"
)

// world is a plugin beside a cache that lags behind the storage until a test
// lets it catch up. It lives in a bubble of synctest, with a clock of its own.
type world struct {
	*testing.T
	plugin         handler
	cache, storage *fake.Clientset
}

func inWorld(t *testing.T, test func(w *world), limitRanges ...*v1.LimitRange) {
	synctest.Test(t, func(t *testing.T) {
		cache, storage := fake.NewClientset(objects(limitRanges...)...), fake.NewClientset(objects(limitRanges...)...)
		w := &world{T: t, plugin: newPlugin(t, cache, storage), cache: cache, storage: storage}
		synctest.Wait() // until all is delivered
		test(w)
	})
}

// write sends a request that puts the LimitRange into storage, or deletes it. The
// request has not ended before end is called.
func (w *world) write(operation admission.Operation, limitRange *v1.LimitRange) (end func()) {
	w.Helper()
	ctx, cancel := context.WithCancel(w.Context())
	request := admission.NewAttributesRecord(nil, nil, v1.SchemeGroupVersion.WithKind("LimitRange"), "ns", limitRange.Name,
		v1.SchemeGroupVersion.WithResource("limitranges"), "", operation, nil, false, nil)
	if err := w.plugin.Validate(ctx, request, nil); err != nil {
		w.Fatal(err)
	}
	w.apply(w.storage, operation, limitRange)
	return func() {
		cancel()
		synctest.Wait()
	}
}

// catchUp brings the cache what was written.
func (w *world) catchUp(operation admission.Operation, limitRange *v1.LimitRange) {
	w.Helper()
	w.apply(w.cache, operation, limitRange)
	synctest.Wait()
}

func (w *world) apply(to *fake.Clientset, operation admission.Operation, limitRange *v1.LimitRange) {
	w.Helper()
	var err error
	switch client := to.TenancyV1().LimitRanges("ns"); operation {
	case admission.Create:
		err = to.Tracker().Add(limitRange)
	case admission.Update:
		_, err = client.Update(w.Context(), limitRange, metav1.UpdateOptions{})
	case admission.Delete:
		err = client.Delete(w.Context(), limitRange.Name, metav1.DeleteOptions{})
	}
	if err != nil {
		w.Fatal(err)
	}
}

// expect checks whether a Pod with 2 CPUs is admitted, and how often storage was
// read for it.
func (w *world) expect(when string, admitted bool, reads int) {
	w.Helper()
	before := lists(w.storage)
	err := w.plugin.Validate(w.Context(), create(newPod("2")), nil)
	if (err == nil) != admitted {
		w.Errorf("%s: got %v, want admitted: %t", when, err, admitted)
	}
	if got := lists(w.storage) - before; got != reads {
		w.Errorf("%s: storage was read %d times, not %d", when, got, reads)
	}
}

func changed(limitRange *v1.LimitRange) *v1.LimitRange {
	limitRange.ResourceVersion = "2"
	return limitRange
}

func TestCachedLimitRangesAreUsed(t *testing.T) {
	inWorld(t, func(w *world) {
		w.expect("the first Pod", false, 0)
		w.expect("the second Pod", false, 0)
	}, maxCPU("a", "1"))
}

func TestCreatedThroughThisServer(t *testing.T) {
	inWorld(t, func(w *world) {
		w.expect("before", true, 1)
		w.expect("before, a moment later", true, 0)

		end := w.write(admission.Create, maxCPU("a", "1"))
		w.expect("before the answer", false, 1)
		end()
		w.expect("after the answer", false, 1)
		w.expect("as long as the cache lags", false, 1)

		w.catchUp(admission.Create, maxCPU("a", "1"))
		w.expect("when the cache is found to have caught up", false, 1)
		w.expect("from then on", false, 0)
	})
}

func TestChangedThroughThisServer(t *testing.T) {
	inWorld(t, func(w *world) {
		w.expect("before", false, 0)
		end := w.write(admission.Update, changed(maxCPU("a", "3")))
		end()
		w.expect("after the answer", true, 1)
		w.catchUp(admission.Update, changed(maxCPU("a", "3")))
		w.expect("when the cache is found to have caught up", true, 1)
		w.expect("from then on", true, 0)
	}, maxCPU("a", "1"))
}

func TestDeletedThroughThisServer(t *testing.T) {
	inWorld(t, func(w *world) {
		end := w.write(admission.Delete, maxCPU("a", "1"))
		end()
		w.expect("after the answer", true, 1)
		w.catchUp(admission.Delete, maxCPU("a", "1"))
		w.expect("when the cache is found to have caught up", true, 1)
		w.expect("from then on, without any", true, 1)
		w.expect("a moment later", true, 0)
	}, maxCPU("a", "1"))
}

func TestCreatedBesideOthers(t *testing.T) {
	inWorld(t, func(w *world) {
		end := w.write(admission.Create, maxCPU("b", "1"))
		end()
		w.expect("after the answer", false, 1)
	}, maxCPU("a", "3"))
}

// TestWriteInFlight shows that a cache that looks up to date is not trusted as
// long as there may be more to come.
func TestWriteInFlight(t *testing.T) {
	inWorld(t, func(w *world) {
		ctx, cancel := context.WithCancel(w.Context())
		defer cancel()
		request := admission.NewAttributesRecord(nil, nil, v1.SchemeGroupVersion.WithKind("LimitRange"), "ns", "a",
			v1.SchemeGroupVersion.WithResource("limitranges"), "", admission.Update, nil, false, nil)
		if err := w.plugin.Validate(ctx, request, nil); err != nil {
			w.Fatal(err)
		}
		w.expect("before the write", true, 1)
		w.expect("before the write, once more", true, 1)
		w.apply(w.storage, admission.Update, changed(maxCPU("a", "1")))
		w.expect("after it", false, 1)
	}, maxCPU("a", "3"))
}

// TestAnotherWriteMeanwhile shows that what settles one write does not settle
// the next.
func TestAnotherWriteMeanwhile(t *testing.T) {
	inWorld(t, func(w *world) {
		first := w.write(admission.Create, maxCPU("b", "3"))
		second := w.write(admission.Create, maxCPU("c", "1"))
		first()
		w.catchUp(admission.Create, maxCPU("b", "3"))
		w.expect("while the second is in flight", false, 1)
		second()
		w.expect("after the answer to the second", false, 1)
		w.catchUp(admission.Create, maxCPU("c", "1"))
		w.expect("when the cache is found to have caught up", false, 1)
		w.expect("from then on", false, 0)
	}, maxCPU("a", "3"))
}

// TestWriteDuringLookup shows that a lookup settles no write that began after it.
func TestWriteDuringLookup(t *testing.T) {
	inWorld(t, func(w *world) {
		w.write(admission.Create, maxCPU("b", "3"))()
		w.catchUp(admission.Create, maxCPU("b", "3"))

		begun := false
		w.storage.PrependReactor("list", "limitranges", func(clienttesting.Action) (bool, runtime.Object, error) {
			if begun {
				return false, nil, nil
			}
			begun = true
			w.write(admission.Create, maxCPU("c", "1"))()
			return true, &v1.LimitRangeList{Items: []v1.LimitRange{*maxCPU("a", "3"), *maxCPU("b", "3")}}, nil
		})
		w.expect("by what was there at the lookup", true, 1)
		w.expect("after the answer to the write", false, 1)
	}, maxCPU("a", "3"))
}

func TestReplacedByNamesake(t *testing.T) {
	inWorld(t, func(w *world) {
		other := maxCPU("a", "3")
		other.UID = "another"
		w.write(admission.Delete, maxCPU("a", "1"))()
		w.write(admission.Create, other)()
		w.expect("after the answer", true, 1)
		w.expect("after the answer, a moment later", true, 1)
	}, maxCPU("a", "1"))
}

func TestFailedWrite(t *testing.T) {
	inWorld(t, func(w *world) {
		ctx, cancel := context.WithCancel(w.Context())
		request := admission.NewAttributesRecord(nil, nil, v1.SchemeGroupVersion.WithKind("LimitRange"), "ns", "a",
			v1.SchemeGroupVersion.WithResource("limitranges"), "", admission.Create, nil, false, nil)
		if err := w.plugin.Validate(ctx, request, nil); err != nil {
			w.Fatal(err)
		}
		cancel()
		synctest.Wait()
		w.expect("the first Pod after it", false, 1)
		w.expect("from then on", false, 0)
	}, maxCPU("a", "1"))
}

func TestCreatedThroughAnotherServer(t *testing.T) {
	inWorld(t, func(w *world) {
		w.apply(w.storage, admission.Create, maxCPU("a", "1"))
		w.expect("before the watch delivers it", false, 1)
		w.expect("before the watch delivers it, a moment later", false, 0)
		w.catchUp(admission.Create, maxCPU("a", "1"))
		w.expect("when the watch has delivered it", false, 0)
	})
}

func TestLookupsAreBounded(t *testing.T) {
	inWorld(t, func(w *world) {
		w.expect("the first Pod", true, 1)
		w.expect("the second Pod", true, 0)
		time.Sleep(time.Second + time.Nanosecond) // of the bubble
		w.expect("after a second", true, 1)
	})
}
