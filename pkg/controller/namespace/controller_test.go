// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package namespace

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/testutil"
	"k8s.io/klog/v2/ktesting"

	v1 "github.com/borough-io/borough/pkg/apis/tenancy/v1"
	"github.com/borough-io/borough/pkg/controller/namespace/purge"
	"github.com/borough-io/borough/pkg/generated/clientset/versioned"
	"github.com/borough-io/borough/pkg/generated/clientset/versioned/fake"
)

// attempt is one call of purge.
type attempt struct {
	name  string
	uid   types.UID
	since time.Time
	at    time.Time
}

// bench is a controller in a synctest bubble, where time passes only while
// everything waits. What a purge does is up to the test.
type bench struct {
	*Controller
	t        *testing.T
	client   versioned.Interface
	content  *contentWatcher
	registry metrics.KubeRegistry
	// work runs the workers. newBench has called it, unless there are none.
	work func(workers int)
	stop func()

	mu       sync.Mutex
	attempts []attempt
	busy     map[string]bool
}

func newBench(t *testing.T, workers int, purge func(ctx context.Context, b *bench, ns *v1.Namespace) error, initial ...*v1.Namespace) *bench {
	t.Helper()
	b := &bench{t: t, client: fake.NewSimpleClientset(), content: newContentWatcher(), registry: metrics.NewKubeRegistry(), busy: map[string]bool{}}
	for _, ns := range initial {
		b.create(ns)
	}
	c, err := newController(b.client, b.client.TenancyV1(), b.content, nil, b.registry)
	if err != nil {
		t.Fatal(err)
	}
	b.Controller = c
	c.purge = func(ctx context.Context, ns *v1.Namespace, since time.Time) error {
		b.mu.Lock()
		b.attempts = append(b.attempts, attempt{ns.Name, ns.UID, since, time.Now()})
		if b.busy[ns.Name] {
			t.Errorf("two workers are at %s", ns.Name)
		}
		b.busy[ns.Name] = true
		b.mu.Unlock()
		defer func() {
			b.mu.Lock()
			defer b.mu.Unlock()
			delete(b.busy, ns.Name)
		}()
		return purge(ctx, b, ns)
	}
	_, ctx := ktesting.NewTestContext(t)
	ctx, cancel := context.WithCancel(ctx)
	var running sync.WaitGroup
	running.Go(func() { c.RunInformer(ctx) })
	b.work = func(workers int) {
		running.Go(func() { c.RunWorkers(ctx, workers) })
		synctest.Wait()
	}
	// An event of what the workers found in the cache would cause another pass.
	synctest.Wait()
	if workers > 0 {
		b.work(workers)
	}
	b.stop = func() {
		cancel()
		running.Wait()
	}
	return b
}

func terminating(name string, uid types.UID) *v1.Namespace {
	return &v1.Namespace{
		ObjectMeta: metav1.ObjectMeta{Name: name, UID: uid, DeletionTimestamp: new(metav1.Now())},
		Spec:       v1.NamespaceSpec{Finalizers: []v1.FinalizerName{v1.FinalizerKubernetes}},
		Status:     v1.NamespaceStatus{Phase: v1.NamespaceTerminating},
	}
}

func (b *bench) create(ns *v1.Namespace) {
	b.t.Helper()
	if _, err := b.client.TenancyV1().Namespaces().Create(b.t.Context(), ns, metav1.CreateOptions{}); err != nil {
		b.t.Fatal(err)
	}
}

func (b *bench) update(ns *v1.Namespace) {
	b.t.Helper()
	if _, err := b.client.TenancyV1().Namespaces().Update(b.t.Context(), ns, metav1.UpdateOptions{}); err != nil {
		b.t.Fatal(err)
	}
}

// remove takes a Namespace from storage. It may be called by a purge.
func (b *bench) remove(ns *v1.Namespace) error {
	return b.client.TenancyV1().Namespaces().Delete(context.Background(), ns.Name, metav1.DeleteOptions{})
}

// attemptsAt returns when a Namespace was worked on, in seconds from the first.
func (b *bench) attemptsAt(name string) (seconds []float64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	var first time.Time
	for _, a := range b.attempts {
		if a.name != name {
			continue
		}
		if first.IsZero() {
			first = a.at
		}
		seconds = append(seconds, a.at.Sub(first).Seconds())
	}
	return seconds
}

// TestEvents shows which changes of a Namespace have it worked on.
func TestEvents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, 1, func(context.Context, *bench, *v1.Namespace) error { return nil }, terminating("old", "1"))
		expect := func(when string, want int) {
			t.Helper()
			synctest.Wait()
			b.mu.Lock()
			defer b.mu.Unlock()
			if len(b.attempts) != want {
				t.Errorf("%s: %d attempts, want %d: %v", when, len(b.attempts), want, b.attempts)
			}
		}
		expect("terminating when the controller starts", 1)
		active := terminating("new", "2")
		active.DeletionTimestamp = nil
		b.create(active)
		expect("active", 1)
		ns := terminating("new", "2")
		b.update(ns)
		expect("deleted", 2)
		ns.Status.Conditions = []v1.NamespaceCondition{{Type: "x"}}
		b.update(ns)
		expect("a status", 2)
		ns.Spec.Finalizers = nil
		b.update(ns)
		expect("a finalizer less", 3)
		ns.Finalizers = []string{"example.com/f"}
		b.update(ns)
		expect("a finalizer in the metadata", 4)
		again := terminating("new", "3")
		again.Finalizers = ns.Finalizers
		again.Spec = ns.Spec
		b.update(again)
		expect("another incarnation, the one between unseen", 5)
		b.stop()
	})
}

// TestSinceOfAnotherIncarnation works on a Namespace that the cache has, while only the one
// before was observed. Discovery has to be newer than the Namespace.
func TestSinceOfAnotherIncarnation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, 0, func(context.Context, *bench, *v1.Namespace) error { return nil })
		b.terminations.observe(terminating("ns", "1"), false)
		time.Sleep(time.Hour)
		again := terminating("ns", "2")
		if err := b.informer.GetIndexer().Add(again); err != nil {
			t.Fatal(err)
		}
		b.queue.Add("ns")
		b.work(1)
		if got := b.attempts; len(got) != 1 || got[0].uid != "2" || got[0].since.Before(again.DeletionTimestamp.Time) {
			t.Errorf("got %v", got)
		}
		b.stop()
	})
}

// TestContentWakes follows a Namespace whose content goes while it is watched.
func TestContentWakes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		drained := false
		b := newBench(t, 1, func(_ context.Context, b *bench, ns *v1.Namespace) error {
			b.mu.Lock()
			defer b.mu.Unlock()
			if drained {
				return b.remove(ns)
			}
			return fmt.Errorf("wrapped: %w", &purge.ContentRemainingError{Content: []purge.Remaining{remaining("7", "a", "b")}})
		})
		b.create(terminating("ns", "1"))
		time.Sleep(time.Minute) // well into the backoff
		b.mu.Lock()
		drained = true
		b.mu.Unlock()
		before := len(b.attemptsAt("ns"))
		b.content.send(podsOf("ns"), gone("a"))
		synctest.Wait()
		if got := len(b.attemptsAt("ns")); got != before {
			t.Error("worked on while something was left")
		}
		start := time.Now()
		b.content.send(podsOf("ns"), gone("b"))
		synctest.Wait()
		if got := len(b.attemptsAt("ns")); got != before+1 || time.Since(start) != 0 {
			t.Errorf("%d attempts after the content was gone, %s later", got-before, time.Since(start))
		}
		if n := b.content.open(); n != 0 {
			t.Errorf("%d watches are left open", n)
		}
		b.expectMetrics(`
			# HELP borough_namespace_controller_purged_objects_total [ALPHA] Objects that are gone because their namespace was deleted, except those that a failed purge has deleted.
			# TYPE borough_namespace_controller_purged_objects_total counter
			borough_namespace_controller_purged_objects_total{group="tenancy.borough.io",resource="pods"} 2
			`, "purged_objects_total")
		b.expectTermination(60)
		b.stop()
	})
}

// TestGone shows that a Namespace that others removed is no longer watched.
func TestGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ns := terminating("ns", "1")
		b := newBench(t, 1, func(context.Context, *bench, *v1.Namespace) error {
			return &purge.ContentRemainingError{Content: []purge.Remaining{remaining("7", "a")}}
		}, ns)
		if n := b.content.open(); n != 1 {
			t.Errorf("%d watches are open", n)
		}
		if err := b.remove(ns); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if n := b.content.open(); n != 0 {
			t.Errorf("%d watches are open of what is gone", n)
		}
		time.Sleep(time.Hour)
		if got := b.attemptsAt("ns"); len(got) != 1 {
			t.Errorf("worked on at %v", got)
		}
		b.stop()
	})
}

// TestStuckOnFinalizers has a pass fail over a Namespace that waits for another agent. When it
// is tried again, the Namespace is no longer counted as one whose content cannot be deleted.
func TestStuckOnFinalizers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, 1, func(_ context.Context, b *bench, _ *v1.Namespace) error {
			if len(b.attemptsAt("ns")) == 1 {
				return errors.New("no")
			}
			return nil
		})
		ns := terminating("ns", "1")
		ns.Spec.Finalizers = []v1.FinalizerName{"example.com/other"}
		b.create(ns)
		for _, want := range []string{stuckOnFailure, stuckOnFinalizers} {
			synctest.Wait()
			if _, stuck, _ := b.terminations.account(); stuck[want] != 1 || len(stuck) != 1 {
				t.Errorf("stuck: %v, want on %s", stuck, want)
			}
			time.Sleep(time.Minute)
		}
		b.stop()
	})
}

// TestRunEnds checks that RunWorkers leaves no goroutine running: otherwise the
// synctest bubble would not end.
func TestRunEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, 3, func(ctx context.Context, _ *bench, ns *v1.Namespace) error {
			switch ns.Name {
			case "busy":
				<-ctx.Done()
				return ctx.Err()
			case "waits":
				return &purge.ContentRemainingError{Content: []purge.Remaining{remaining("7", "a")}}
			default:
				return errors.New("no")
			}
		}, terminating("busy", "1"), terminating("waits", "2"), terminating("fails", "3"))
		time.Sleep(time.Second)
		if n := b.content.open(); n != 1 {
			t.Errorf("%d watches are open", n)
		}
		b.stop()
		if n := b.content.open(); n != 0 {
			t.Errorf("%d watches are left open", n)
		}
	})
}

func (b *bench) expectMetrics(want string, names ...string) {
	b.t.Helper()
	for i := range names {
		names[i] = metricsSubsystem + "_" + names[i]
	}
	if err := testutil.GatherAndCompare(b.registry, strings.NewReader(want), names...); err != nil {
		b.t.Error(err)
	}
}

// expectTermination fails the test unless one termination was observed, which took so many
// seconds.
func (b *bench) expectTermination(seconds float64) {
	b.t.Helper()
	families, err := b.registry.Gather()
	if err != nil {
		b.t.Error(err)
	}
	for _, family := range families {
		if family.GetName() == metricsSubsystem+"_termination_duration_seconds" {
			if h := family.GetMetric()[0].GetHistogram(); h.GetSampleCount() != 1 || h.GetSampleSum() != seconds {
				b.t.Errorf("%d terminations took %v s, want one that took %v s", h.GetSampleCount(), h.GetSampleSum(), seconds)
			}
			return
		}
	}
	b.t.Error("no termination was observed")
}
