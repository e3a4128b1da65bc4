// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package limitranger_test

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"

	v1 "github.com/borough-io/borough/pkg/apis/tenancy/v1"
	"github.com/borough-io/borough/pkg/generated/clientset/versioned/fake"
	"github.com/borough-io/borough/pkg/storage/precondition"
)

// fixture is a plugin with a cache that is behind storage until a test makes it
// catch up. It runs in a synctest bubble.
type fixture struct {
	*testing.T
	plugin         handler
	cache, storage *fake.Clientset
	revision       int64 // of the storage
}

func withFixture(t *testing.T, test func(w *fixture), limitRanges ...*v1.LimitRange) {
	synctest.Test(t, func(t *testing.T) {
		cache, storage := fake.NewClientset(objects(limitRanges...)...), fake.NewClientset(objects(limitRanges...)...)
		w := &fixture{T: t, plugin: newPlugin(t, cache, storage), cache: cache, storage: storage, revision: 10}
		synctest.Wait() // until all is delivered
		test(w)
	})
}

var limitRanges = v1.SchemeGroupVersion.WithResource("limitranges")

// put writes a LimitRange to storage, as another server does.
func (w *fixture) put(limitRange *v1.LimitRange) {
	w.Helper()
	w.revision++
	limitRange.ResourceVersion = strconv.FormatInt(w.revision, 10)
	w.write(w.storage, limitRange)
}

// remove removes a LimitRange from storage.
func (w *fixture) remove(name string) {
	w.Helper()
	w.revision++
	if err := w.storage.Tracker().Delete(limitRanges, "ns", name); err != nil {
		w.Fatal(err)
	}
}

// catchUp copies storage to the cache.
func (w *fixture) catchUp() {
	w.Helper()
	stored := w.stored()
	for _, limitRange := range stored {
		w.write(w.cache, &limitRange)
	}
	cached, err := w.cache.Tracker().List(limitRanges, v1.SchemeGroupVersion.WithKind("LimitRange"), "ns")
	if err != nil {
		w.Fatal(err)
	}
	for _, limitRange := range cached.(*v1.LimitRangeList).Items {
		if !slices.ContainsFunc(stored, func(s v1.LimitRange) bool { return s.Name == limitRange.Name }) {
			if err := w.cache.Tracker().Delete(limitRanges, "ns", limitRange.Name); err != nil {
				w.Fatal(err)
			}
		}
	}
	synctest.Wait()
}

// holdReads makes reads from storage wait until the channel is closed.
func (w *fixture) holdReads() (release chan struct{}) {
	release = make(chan struct{})
	w.storage.PrependReactor("list", "limitranges", func(clienttesting.Action) (bool, runtime.Object, error) {
		<-release
		return false, nil, nil
	})
	return release
}

func (w *fixture) write(to *fake.Clientset, limitRange *v1.LimitRange) {
	w.Helper()
	if err := to.Tracker().Update(limitRanges, limitRange.DeepCopy(), "ns"); err == nil {
		return
	}
	if err := to.Tracker().Add(limitRange.DeepCopy()); err != nil {
		w.Fatal(err)
	}
}

// stored returns what is in storage, and does not count as a read.
func (w *fixture) stored() []v1.LimitRange {
	list, err := w.storage.Tracker().List(limitRanges, v1.SchemeGroupVersion.WithKind("LimitRange"), "ns")
	if err != nil {
		w.Fatal(err)
	}
	return list.(*v1.LimitRangeList).Items
}

// Check implements precondition.Checker.
func (w *fixture) Check(_ context.Context, objects precondition.Objects) (staleAt int64, err error) {
	stored := w.stored()
	same := slices.EqualFunc(objects.Versions, stored, func(v precondition.Version, s v1.LimitRange) bool {
		return v.Name == s.Name && strconv.FormatInt(v.Revision, 10) == s.ResourceVersion
	})
	if same {
		return 0, nil
	}
	return w.revision, nil
}

// request creates a Pod with 2 CPUs as the server does, which repeats a stale
// attempt.
func (w *fixture) request(ctx context.Context) (attempts int, err error) {
	for staleAt := int64(0); ; attempts++ {
		ctx, attempt := precondition.NewAttempt(ctx, w, staleAt)
		err = w.plugin.Validate(ctx, create(newPod("2")), nil)
		if staleAt, _ = attempt.Verify(ctx); staleAt == 0 {
			return attempts + 1, err
		}
	}
}

// expect checks whether a Pod with 2 CPUs is admitted, in how many attempts, and
// how often storage was read for it.
func (w *fixture) expect(when string, admitted bool, attempts, reads int) {
	w.Helper()
	before := lists(w.storage)
	tried, err := w.request(w.Context())
	if (err == nil) != admitted {
		w.Errorf("%s: got %v, want admitted: %t", when, err, admitted)
	}
	if tried != attempts {
		w.Errorf("%s: it took %d attempts, not %d", when, tried, attempts)
	}
	if got := lists(w.storage) - before; got != reads {
		w.Errorf("%s: storage was read %d times, not %d", when, got, reads)
	}
}

func TestCachedLimitRangesAreUsed(t *testing.T) {
	withFixture(t, func(w *fixture) {
		w.expect("the first Pod", false, 1, 0)
		w.expect("the second Pod", false, 1, 0)
	}, maxCPU("a", "1"))
	withFixture(t, func(w *fixture) { w.expect("without any", true, 1, 0) })
}

func TestLimitRangesBeforeTheWatchDelivers(t *testing.T) {
	for name, test := range map[string]struct {
		before   []*v1.LimitRange
		write    func(w *fixture)
		admitted bool
	}{
		"created":              {nil, func(w *fixture) { w.put(maxCPU("a", "1")) }, false},
		"another created":      {[]*v1.LimitRange{maxCPU("a", "3")}, func(w *fixture) { w.put(maxCPU("b", "1")) }, false},
		"changed":              {[]*v1.LimitRange{maxCPU("a", "1")}, func(w *fixture) { w.put(maxCPU("a", "3")) }, true},
		"deleted":              {[]*v1.LimitRange{maxCPU("a", "1")}, func(w *fixture) { w.remove("a") }, true},
		"another deleted":      {[]*v1.LimitRange{maxCPU("a", "3"), maxCPU("b", "1")}, func(w *fixture) { w.remove("b") }, true},
		"replaced by namesake": {[]*v1.LimitRange{maxCPU("a", "1")}, func(w *fixture) { w.remove("a"); w.put(maxCPU("a", "3")) }, true},
	} {
		t.Run(name, func(t *testing.T) {
			withFixture(t, func(w *fixture) {
				w.expect("before", !test.admitted, 1, 0)
				test.write(w)
				w.expect("after the answer", test.admitted, 2, 1)
				w.expect("a moment later", test.admitted, 1, 0)
				w.catchUp()
				w.expect("when the watch has delivered it", test.admitted, 1, 0)
			}, test.before...)
		})
	}
}

// TestDeliveredIsNewerThanRead shows that a cached read is used only while the watch
// is behind it.
func TestDeliveredIsNewerThanRead(t *testing.T) {
	withFixture(t, func(w *fixture) {
		w.put(maxCPU("a", "1"))
		w.expect("after the answer", false, 2, 1)
		w.put(maxCPU("a", "3"))
		w.catchUp()
		w.expect("when the watch has delivered the next", true, 1, 0)
	})
}

// TestChangedDuringSecondAttempt shows that a request needs at most two attempts, even
// if the LimitRanges change again: it began before that change.
func TestChangedDuringSecondAttempt(t *testing.T) {
	withFixture(t, func(w *fixture) {
		w.put(maxCPU("a", "1"))
		w.storage.PrependReactor("list", "limitranges", func(clienttesting.Action) (bool, runtime.Object, error) {
			found := &v1.LimitRangeList{Items: w.stored()}
			w.put(maxCPU("b", "1"))
			return true, found, nil
		})
		w.expect("with what was there at the read", false, 2, 1)
	})
}

// TestBurst shows that requests share a read.
func TestBurst(t *testing.T) {
	withFixture(t, func(w *fixture) {
		w.put(maxCPU("a", "1"))
		release := w.holdReads()
		var requests sync.WaitGroup
		for range 64 {
			requests.Go(func() {
				if attempts, err := w.request(w.Context()); err == nil || attempts != 2 {
					w.Errorf("got %v in %d attempts", err, attempts)
				}
			})
		}
		synctest.Wait()
		close(release)
		requests.Wait()
		if got := lists(w.storage); got != 1 {
			w.Errorf("storage was read %d times", got)
		}
	})
}

// TestReadFromBefore shows that a request does not use the result of a read that is
// older than its minimum revision.
func TestReadFromBefore(t *testing.T) {
	withFixture(t, func(w *fixture) {
		w.put(maxCPU("a", "3"))
		release := make(chan struct{}, 1)
		w.storage.PrependReactor("list", "limitranges", func(clienttesting.Action) (bool, runtime.Object, error) {
			found := &v1.LimitRangeList{Items: w.stored()}
			<-release
			return true, found, nil
		})
		var requests sync.WaitGroup
		requests.Go(func() {
			if _, err := w.request(w.Context()); err != nil {
				w.Errorf("the first request: %v", err)
			}
		})
		synctest.Wait()
		w.put(maxCPU("b", "1"))
		requests.Go(func() {
			if _, err := w.request(w.Context()); err == nil {
				w.Error("the second request took what was read before")
			}
		})
		synctest.Wait()
		release <- struct{}{}
		release <- struct{}{}
		requests.Wait()
	})
}

// TestReaderLeaves shows that, if the request that began a read is canceled, one of
// the waiting requests reads instead.
func TestReaderLeaves(t *testing.T) {
	withFixture(t, func(w *fixture) {
		w.put(maxCPU("a", "1"))
		ctx, cancel := context.WithCancel(w.Context())
		w.storage.PrependReactor("list", "limitranges", func(clienttesting.Action) (bool, runtime.Object, error) {
			if ctx.Err() == nil {
				<-ctx.Done()
				return true, nil, ctx.Err()
			}
			return false, nil, nil
		})
		var requests sync.WaitGroup
		requests.Go(func() { _, _ = w.request(ctx) })
		synctest.Wait()
		requests.Go(func() {
			if _, err := w.request(w.Context()); err == nil || !strings.Contains(err.Error(), "maximum cpu") {
				w.Errorf("got %v", err)
			}
		})
		synctest.Wait()
		cancel()
		requests.Wait()
	})
}

func TestReadFails(t *testing.T) {
	withFixture(t, func(w *fixture) {
		w.put(maxCPU("a", "1"))
		w.storage.PrependReactor("list", "limitranges", func(clienttesting.Action) (bool, runtime.Object, error) {
			return true, nil, errors.New("out of order")
		})
		want := `pods.tenancy.borough.io "x" is forbidden: list the limit ranges of namespace ns: out of order`
		if _, err := w.request(w.Context()); message(err) != want {
			w.Errorf("\n got %v\nwant %s", err, want)
		}
	})
}

// TestWaiterLeaves shows that a request that waits for the read of another ends with its
// context.
func TestWaiterLeaves(t *testing.T) {
	withFixture(t, func(w *fixture) {
		w.put(maxCPU("a", "1"))
		release := w.holdReads()
		var reader sync.WaitGroup
		reader.Go(func() { _, _ = w.request(w.Context()) })
		synctest.Wait()
		ctx, cancel := context.WithCancel(w.Context())
		time.AfterFunc(time.Second, cancel) // of the bubble
		time.AfterFunc(time.Minute, func() { close(release) })
		if _, err := w.request(ctx); !strings.Contains(message(err), "wait for the limit ranges of namespace ns: context canceled") {
			w.Errorf("got %v", err)
		}
		reader.Wait()
	})
}
