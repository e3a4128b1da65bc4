// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package namespace

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	v1 "github.com/borough-io/borough/pkg/apis/tenancy/v1"
	"github.com/borough-io/borough/pkg/controller/namespace/purge"
)

// TestStuckNamespacesSlowNobody has far more stuck Namespaces than workers,
// each of which takes long over every attempt but the first. One that is
// deleted now is gone before any time has passed.
func TestStuckNamespacesSlowNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		seen := map[string]bool{}
		b := newBench(t, 2, func(ctx context.Context, b *bench, ns *v1.Namespace) error {
			if !strings.HasPrefix(ns.Name, "stuck") {
				return b.remove(ns)
			}
			b.mu.Lock()
			again := seen[ns.Name]
			seen[ns.Name] = true
			b.mu.Unlock()
			if again {
				select {
				case <-time.After(time.Minute):
				case <-ctx.Done():
				}
			}
			return errors.New("stuck")
		})
		for i := range 50 {
			b.create(terminating(fmt.Sprint("stuck-", i), types.UID(fmt.Sprint(i))))
		}
		time.Sleep(10 * time.Minute)
		for i := range 50 { // whose agents are at work
			ns := terminating(fmt.Sprint("stuck-", i), types.UID(fmt.Sprint(i)))
			ns.Finalizers = []string{"example.com/agent"}
			b.update(ns)
		}
		synctest.Wait()
		for i := range 3 {
			start := time.Now()
			name := fmt.Sprint("fresh-", i)
			b.create(terminating(name, types.UID(name)))
			synctest.Wait()
			if got := b.attemptsAt(name); len(got) != 1 || time.Since(start) != 0 {
				t.Errorf("%s was worked on %v after %s", name, got, time.Since(start))
			}
		}
		b.expectMetrics(`
			# HELP borough_namespace_controller_stuck_namespaces [ALPHA] Namespaces that are being deleted and wait: for their content, for others' finalizers, or for the next attempt after a failure.
			# TYPE borough_namespace_controller_stuck_namespaces gauge
			borough_namespace_controller_stuck_namespaces{reason="content"} 0
			borough_namespace_controller_stuck_namespaces{reason="failure"} 50
			borough_namespace_controller_stuck_namespaces{reason="finalizers"} 0
			# HELP borough_namespace_controller_terminating_namespaces [ALPHA] Namespaces that are being deleted.
			# TYPE borough_namespace_controller_terminating_namespaces gauge
			borough_namespace_controller_terminating_namespaces 50
			# HELP borough_namespace_controller_oldest_termination_age_seconds [ALPHA] Time since the deletion of the namespace that has been terminating for longest, 0 if there is none.
			# TYPE borough_namespace_controller_oldest_termination_age_seconds gauge
			borough_namespace_controller_oldest_termination_age_seconds 600
			`, "stuck_namespaces", "terminating_namespaces", "oldest_termination_age_seconds")
		b.stop()
	})
}

// TestHangingFirstPasses has far more Namespaces than workers, all of whose passes
// hang. Those that are deleted after them wait for their turn, each for a bounded
// time, and then not at all.
func TestHangingFirstPasses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const workers, hanging = 3, 30
		b := newBench(t, workers, func(ctx context.Context, b *bench, ns *v1.Namespace) error {
			if strings.HasPrefix(ns.Name, "fresh") {
				return b.remove(ns)
			}
			select {
			case <-time.After(time.Hour):
			case <-ctx.Done():
			}
			return errors.New("hangs")
		})
		for i := range hanging {
			b.create(terminating(fmt.Sprint("hangs-", i), types.UID(fmt.Sprint(i))))
		}
		for i, within := range []time.Duration{hanging / workers * firstPassTimeout, 0, 0} {
			name := fmt.Sprint("fresh-", i)
			b.create(terminating(name, types.UID(name)))
			time.Sleep(within)
			synctest.Wait()
			if len(b.attemptsAt(name)) == 0 {
				t.Errorf("no pass over %s within %s", name, within)
			}
		}
		if _, stuck, _ := b.terminations.account(); len(stuck) > 0 {
			t.Errorf("stuck: %v, but no pass has failed yet", stuck)
		}
		time.Sleep(48 * time.Hour)
		for i := range hanging {
			if got := b.attemptsAt(fmt.Sprint("hangs-", i)); len(got) < 4 {
				t.Errorf("passes over hangs-%d after %v s, want more", i, got)
			}
		}
		b.stop()
	})
}

// TestLongFirstPass checks that a pass that takes long is not interrupted while
// there are no retries.
func TestLongFirstPass(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, 1, func(ctx context.Context, b *bench, ns *v1.Namespace) error {
			select {
			case <-time.After(time.Minute):
				return b.remove(ns)
			case <-ctx.Done():
				return ctx.Err()
			}
		})
		for i := range 3 { // one after the other: the slot is free again
			name := fmt.Sprint(i)
			b.create(terminating(name, types.UID(name)))
			time.Sleep(time.Hour)
			if got := b.attemptsAt(name); len(got) != 1 {
				t.Errorf("passes over %s after %v s, want one", name, got)
			}
		}
		b.stop()
	})
}

// TestWaitingRetries checks that a retry that waits for a slot does not keep those
// behind it waiting when it needs the slot no longer.
func TestWaitingRetries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		b := newBench(t, 1, func(_ context.Context, b *bench, ns *v1.Namespace) error {
			if ns.Name == "slow" && len(b.attemptsAt("slow")) > 1 {
				<-release
			}
			return errors.New("again")
		})
		b.create(terminating("slow", "slow"))
		time.Sleep(retryBaseDelay) // slow has the only slot
		for _, name := range []string{"woken", "behind"} {
			b.create(terminating(name, types.UID(name)))
		}
		time.Sleep(retryBaseDelay) // and they wait for it
		b.wake("woken", true)
		synctest.Wait()
		if got := b.attemptsAt("woken"); len(got) != 2 {
			t.Errorf("passes over a Namespace that was woken after %v s, want two", got)
		}
		b.done("woken")
		before := len(b.attemptsAt("behind"))
		close(release)
		synctest.Wait()
		if got := b.attemptsAt("behind"); len(got) == before {
			t.Errorf("passes over the Namespace that waited next after %v s, want another", got)
		}
		b.stop()
	})
}

// TestFinalizersChange checks that a change of the finalizers of content waits for a slot,
// and that the removal of the content does not.
func TestFinalizersChange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		b := newBench(t, 1, func(_ context.Context, b *bench, ns *v1.Namespace) error {
			if ns.Name == "held" {
				return &purge.ContentRemainingError{Content: []purge.Remaining{remaining("7", "a")}}
			}
			if len(b.attemptsAt("slow")) > 1 {
				<-release
			}
			return errors.New("again")
		})
		b.create(terminating("slow", "slow"))
		time.Sleep(retryBaseDelay) // slow has the only slot
		b.create(terminating("held", "held"))
		synctest.Wait()
		for _, tc := range []struct {
			event watch.Event
			want  int
		}{{event(watch.Modified, "a", true, "f"), 1}, {gone("a"), 2}} {
			b.content.send(podsOf("held"), tc.event)
			synctest.Wait()
			if got := b.attemptsAt("held"); len(got) != tc.want {
				t.Errorf("passes after %v s, want %d", got, tc.want)
			}
		}
		close(release)
		b.stop()
	})
}

// TestStandby checks that the queue of a replica that does not lead stays empty, and that
// it processes the Namespaces that are left when it leads.
func TestStandby(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, 0, func(_ context.Context, b *bench, ns *v1.Namespace) error { return b.remove(ns) }, terminating("initial", "1"))
		gone := terminating("gone", "2")
		b.create(gone)
		b.create(terminating("later", "3"))
		synctest.Wait()
		if err := b.remove(gone); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if got := b.queue.Len(); got != 0 {
			t.Errorf("%d keys in the queue of a replica that does not lead", got)
		}
		b.work(1)
		b.create(terminating("new", "4"))
		synctest.Wait()
		for name, want := range map[string]int{"initial": 1, "gone": 0, "later": 1, "new": 1} {
			if got := b.attemptsAt(name); len(got) != want {
				t.Errorf("%d passes over %s, want %d", len(got), name, want)
			}
		}
		b.stop()
	})
}

// TestBackoff shows that a failure is tried again ever later, within bounds,
// and each time with discovery newer than the attempt.
func TestBackoff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, 1, func(context.Context, *bench, *v1.Namespace) error { return errors.New("no") })
		b.create(terminating("ns", "1"))
		time.Sleep(2 * time.Minute)
		got := b.attemptsAt("ns")
		want := []float64{0, .1, .3, .7, 1.5, 3.1, 6.3, 12.7, 25.5, 51.1, 81.1, 111.1}
		if !slices.EqualFunc(got, want, func(a, b float64) bool { return a-b < .01 && b-a < .01 }) {
			t.Errorf("attempts at %v, want %v", got, want)
		}
		for i, a := range b.attempts {
			if !a.since.Equal(a.at) {
				t.Errorf("attempt %d at %s has discovery of %s", i, a.at, a.since)
			}
		}
		b.stop()
	})
}

// TestAnotherIncarnation creates a Namespace again, under the same name, while the old one is
// in backoff and its removal is not seen. The new one is not in backoff.
func TestAnotherIncarnation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, 1, func(context.Context, *bench, *v1.Namespace) error { return errors.New("no") })
		b.create(terminating("ns", "1"))
		const age = 2 * time.Minute
		time.Sleep(age)
		before := len(b.attemptsAt("ns"))
		b.update(terminating("ns", "2"))
		synctest.Wait()
		time.Sleep(retryBaseDelay)
		synctest.Wait()
		want := []float64{age.Seconds(), (age + retryBaseDelay).Seconds()}
		if got := b.attemptsAt("ns")[before:]; !slices.Equal(got, want) {
			t.Errorf("attempts at %v, want %v", got, want)
		}
		b.expectTermination(age.Seconds())
		b.stop()
	})
}

// TestStop stops the controller while many Namespaces are in the queue. It makes no passes over
// them any more, because another controller waits for the Lease.
func TestStop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const workers = 2
		var passes atomic.Int32
		b := newBench(t, workers, func(ctx context.Context, _ *bench, _ *v1.Namespace) error {
			passes.Add(1)
			<-ctx.Done()
			return context.Cause(ctx)
		})
		for i := range 90 {
			b.create(terminating(fmt.Sprint("n", i), types.UID(fmt.Sprint(i))))
		}
		synctest.Wait()
		b.stop()
		if got := passes.Load(); got > 2*workers {
			t.Errorf("%d passes", got)
		}
	})
}

// TestOneWorkerAtATime has events, wakes and retries come at once; newBench
// checks that no Namespace is worked on twice at the same time.
func TestOneWorkerAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		calls := map[string]int{}
		b := newBench(t, 8, func(_ context.Context, b *bench, ns *v1.Namespace) error {
			time.Sleep(30 * time.Millisecond)
			b.mu.Lock()
			defer b.mu.Unlock()
			if calls[ns.Name]++; calls[ns.Name]%3 == 0 {
				return nil
			}
			return errors.New("again")
		})
		for i := range 5 {
			b.create(terminating(fmt.Sprint(i), types.UID(fmt.Sprint(i))))
		}
		for step := range 500 {
			name := fmt.Sprint(step % 5)
			time.Sleep(7 * time.Millisecond)
			b.wake(name, true)
			ns := terminating(name, types.UID(name))
			ns.Finalizers = []string{fmt.Sprint("example.com/", step)}
			b.update(ns)
		}
		synctest.Wait()
		b.stop()
		for name, n := range calls {
			if n < 10 {
				t.Errorf("%s was worked on %d times only", name, n)
			}
		}
	})
}
