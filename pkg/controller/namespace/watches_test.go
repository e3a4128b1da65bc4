// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package namespace

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/metadata"

	v1 "github.com/borough-io/borough/pkg/apis/tenancy/v1"
	"github.com/borough-io/borough/pkg/controller/namespace/purge"
)

var (
	pods        = v1.SchemeGroupVersion.WithResource("pods")
	limitRanges = v1.SchemeGroupVersion.WithResource("limitranges")
)

// watched identifies a watch of a contentWatcher.
type watched struct {
	resource  schema.GroupVersionResource
	namespace string
}

func podsOf(namespace string) watched { return watched{pods, namespace} }

// contentWatcher is a metadata client that can only watch.
type contentWatcher struct {
	metadata.Interface
	metadata.Getter
	*watchers
	of watched
}

type watchers struct {
	mu      sync.Mutex
	byKind  map[watched]*watch.RaceFreeFakeWatcher
	from    []string // the resourceVersions that were asked for
	refused error
}

func newContentWatcher() *contentWatcher {
	return &contentWatcher{watchers: &watchers{byKind: map[watched]*watch.RaceFreeFakeWatcher{}}}
}

func (c *contentWatcher) Resource(gvr schema.GroupVersionResource) metadata.Getter {
	return &contentWatcher{watchers: c.watchers, of: watched{resource: gvr}}
}

func (c *contentWatcher) Namespace(name string) metadata.ResourceInterface {
	return &contentWatcher{watchers: c.watchers, of: watched{c.of.resource, name}}
}

func (c *contentWatcher) Watch(_ context.Context, opts metav1.ListOptions) (watch.Interface, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.refused != nil {
		return nil, c.refused
	}
	w := watch.NewRaceFreeFake()
	c.byKind[c.of] = w
	c.from = append(c.from, opts.ResourceVersion)
	return w, nil
}

func (w *watchers) open() (n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, of := range w.byKind {
		if !of.IsStopped() {
			n++
		}
	}
	return n
}

func (w *watchers) send(to watched, event watch.Event) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.byKind[to].Action(event.Type, event.Object)
}

func remaining(resourceVersion string, objects ...types.UID) purge.Remaining {
	r := purge.Remaining{
		Resource:        purge.Resource{GroupVersionResource: pods, Watch: true},
		ResourceVersion: resourceVersion,
		Objects:         map[types.UID][]string{},
	}
	for _, uid := range objects {
		r.Objects[uid] = nil
	}
	return r
}

func event(t watch.EventType, uid types.UID, deleting bool, finalizers ...string) watch.Event {
	o := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: string(uid), UID: uid, Finalizers: finalizers}}
	if deleting {
		o.DeletionTimestamp = new(metav1.Now())
	}
	return watch.Event{Type: t, Object: o}
}

func gone(uid types.UID) watch.Event { return event(watch.Deleted, uid, true) }

func TestContentWatchObserve(t *testing.T) {
	type step struct {
		event     watch.Event
		wake, end bool
	}
	for _, tc := range []struct {
		name    string
		objects map[types.UID][]string
		steps   []step
	}{
		{"the last object goes", map[types.UID][]string{"a": nil, "b": nil}, []step{
			{gone("a"), false, false}, {gone("b"), true, true},
		}},
		{"an unknown object goes", map[types.UID][]string{"a": nil}, []step{
			{gone("x"), false, false}, {gone("a"), true, true},
		}},
		{"a status changes", map[types.UID][]string{"a": {"f"}}, []step{
			{event(watch.Modified, "a", true, "f"), false, false},
		}},
		{"a new object is not marked for deletion", map[types.UID][]string{"a": nil}, []step{
			{event(watch.Added, "x", false), true, true},
		}},
		{"something new is there that is going", map[types.UID][]string{"a": nil}, []step{
			{event(watch.Added, "x", true), false, false}, {gone("a"), false, false}, {gone("x"), true, true},
		}},
		{"what could not be deleted changes", map[types.UID][]string{"a": nil}, []step{
			{event(watch.Modified, "a", false), false, false},
		}},
		{"one of two finalizers of a kind goes, then the other", map[types.UID][]string{"a": {"f"}, "b": {"f", "g"}}, []step{
			{event(watch.Modified, "a", true), false, false}, {event(watch.Modified, "b", true, "g"), true, false},
			{gone("b"), true, false}, {gone("a"), true, true},
		}},
		{"another finalizer appears", map[types.UID][]string{"a": {"f"}}, []step{
			{event(watch.Modified, "a", true, "f", "g"), true, false}, {event(watch.Modified, "a", true, "g"), true, false},
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			cw := &contentWatch{objects: tc.objects, finalizers: map[string]int{}}
			for _, finalizers := range tc.objects {
				for _, f := range finalizers {
					cw.finalizers[f]++
				}
			}
			for i, step := range tc.steps {
				wake, end := cw.observe(step.event.Type, step.event.Object.(*metav1.PartialObjectMetadata))
				if wake != step.wake || end != step.end {
					t.Errorf("step %d: wake %v, end %v, want %v, %v", i, wake, end, step.wake, step.end)
				}
			}
		})
	}
}

// TestContentWatchEnds ends watches, as a server does that restarts. The Namespace is
// processed at once, but not again and again if each watch ends soon.
func TestContentWatchEnds(t *testing.T) {
	for name, end := range map[string]func(*watch.RaceFreeFakeWatcher){
		"closed":  func(w *watch.RaceFreeFakeWatcher) { w.Stop() },
		"expired": func(w *watch.RaceFreeFakeWatcher) { w.Error(&metav1.Status{Message: "too old"}) },
	} {
		for after, want := range map[time.Duration]int{retryMaxDelay - 1: 0, retryMaxDelay: 1} {
			t.Run(fmt.Sprint(name, " after ", after), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					client, woken := newContentWatcher(), 0
					var w *contentWatches
					w = newContentWatches(client, func(key string, gone bool) {
						woken++
						if gone {
							t.Error("it was woken as if the content were gone")
						}
						w.keep(t.Context(), key, "1", 0, []purge.Remaining{remaining("8", "a")})
					}, func(string, types.UID) {}, func(schema.GroupVersionResource, int) {})
					w.keep(t.Context(), "ns", "1", 0, []purge.Remaining{remaining("7", "a")})
					time.Sleep(after)
					synctest.Wait()
					end(client.byKind[podsOf("ns")])
					synctest.Wait()
					if woken != want || client.open() != want {
						t.Errorf("it was woken %d times, and %d watches are open, want %d", woken, client.open(), want)
					}
					w.stop("ns")
				})
			})
		}
	}
}

// TestContentWatches shows when watches are opened and closed.
func TestContentWatches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		client := newContentWatcher()
		var woken []string
		var lastGone bool
		var purged, moved int
		w := newContentWatches(client, func(key string, gone bool) { woken, lastGone = append(woken, key), gone }, func(string, types.UID) { moved++ },
			func(_ schema.GroupVersionResource, n int) { purged += n })
		expect := func(when string, open int, from ...string) {
			t.Helper()
			synctest.Wait()
			if got := client.open(); got != open || w.open != open {
				t.Errorf("%s: %d watches are open (%d on the books), want %d", when, got, w.open, open)
			}
			if !slices.Equal(client.from, from) {
				t.Errorf("%s: watches from %v, want %v", when, client.from, from)
			}
		}

		w.keep(ctx, "ns", "1", 0, []purge.Remaining{remaining("7", "a", "b")})
		expect("content remains", 1, "7")
		w.keep(ctx, "ns", "1", 0, []purge.Remaining{remaining("8", "a", "b")})
		expect("it still does", 1, "7")
		w.keep(ctx, "ns", "2", 0, []purge.Remaining{remaining("9", "c", "d")})
		expect("of another incarnation", 1, "7", "9")
		others := remaining("10", "l")
		others.GroupVersionResource = limitRanges
		w.keep(ctx, "ns", "2", 0, []purge.Remaining{others})
		expect("of another kind", 1, "7", "9", "10")
		blind := remaining("11", "x")
		blind.Watch = false
		w.keep(ctx, "ns", "2", 0, []purge.Remaining{others, blind})
		expect("that cannot be watched", 1, "7", "9", "10")
		w.stop("ns")
		expect("the namespace is gone", 0, "7", "9", "10")

		w.keep(ctx, "ns", "3", 0, []purge.Remaining{remaining("12", "a")})
		expect("once more", 1, "7", "9", "10", "12")
		client.send(podsOf("ns"), watch.Event{Type: watch.Error, Object: &metav1.Status{Message: "too old"}})
		expect("the watch breaks", 0, "7", "9", "10", "12")
		if len(woken) > 0 {
			t.Errorf("woken by a watch that broke: %v", woken)
		}
		client.refused = errors.New("no")
		w.keep(ctx, "ns", "3", 0, []purge.Remaining{remaining("13", "a")})
		expect("the watch is refused", 0, "7", "9", "10", "12")
		client.refused = nil
		w.keep(ctx, "ns", "3", 0, []purge.Remaining{remaining("14", "a")})
		expect("and then not", 1, "7", "9", "10", "12", "14")
		client.send(podsOf("ns"), gone("a"))
		expect("the content is gone", 0, "7", "9", "10", "12", "14")
		if !slices.Equal(woken, []string{"ns"}) || !lastGone || purged != 1 || moved != 1 {
			t.Errorf("woken: %v, gone: %t, purged: %d, moved: %d", woken, lastGone, purged, moved)
		}

		held := remaining("15", "a")
		held.Objects["a"] = []string{"f", "g"}
		w.keep(ctx, "ns", "3", 0, []purge.Remaining{held})
		synctest.Wait()
		client.send(podsOf("ns"), event(watch.Modified, "a", true, "f", "g"))
		synctest.Wait()
		if moved != 1 {
			t.Error("a change that is no progress has moved the namespace")
		}
		client.send(podsOf("ns"), event(watch.Modified, "a", true, "f"))
		synctest.Wait()
		if moved != 2 {
			t.Error("a finalizer that goes has not moved the namespace")
		}
		if len(woken) != 2 || lastGone {
			t.Errorf("woken: %v, gone: %t", woken, lastGone)
		}
		w.stop("ns")
		client.from = client.from[:len(client.from)-1]

		// A pass that is woken may watch the same content again.
		w.wake = func(key string, _ bool) {
			w.wake = func(string, bool) {}
			w.keep(ctx, key, "3", 0, []purge.Remaining{remaining("16", "b")})
		}
		w.keep(ctx, "ns", "3", 0, []purge.Remaining{remaining("15", "a")})
		synctest.Wait()
		client.send(podsOf("ns"), gone("a"))
		expect("content again", 1, "7", "9", "10", "12", "14", "15", "16")
		w.stop("ns")

		w.keep(ctx, "ns", "3", 0, []purge.Remaining{remaining("17", "a")})
		expect("until the context ends", 1, "7", "9", "10", "12", "14", "15", "16", "17")
		cancel()
		w.wait()
		if got := client.open(); got != 0 || len(w.byKey) != 0 || w.open != 0 {
			t.Errorf("%d watches are open, %d on the books", got, w.open)
		}
	})
}

// TestMaxContentWatches shows which watches are open if more content remains than can be watched.
func TestMaxContentWatches(t *testing.T) {
	type pass struct {
		key      string
		requeues int
	}
	for _, tc := range []struct {
		name   string
		passes []pass
		open   []string
	}{
		{"the most retried goes", []pass{{"a", 3}, {"b", 2}, {"new", 0}}, []string{"b", "new"}},
		{"it was retried since", []pass{{"a", 0}, {"b", 0}, {"b", 1}, {"new", 0}}, []string{"a", "new"}},
		{"it opens no other", []pass{{"a", 3}, {"b", 2}, {"new", 0}, {"a", 4}, {"new", 1}, {"a", 5}}, []string{"b", "new"}},
		{"none was retried more often", []pass{{"a", 1}, {"b", 1}, {"c", 1}}, []string{"a", "b"}},
		{"there is room again", []pass{{"a", 1}, {"b", 1}, {"c", 1}, {"a", -1}, {"c", 2}}, []string{"b", "c"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				client := newContentWatcher()
				w := newContentWatches(client, func(string, bool) {}, func(string, types.UID) {}, func(schema.GroupVersionResource, int) {})
				w.max = 2
				for _, p := range tc.passes {
					if p.requeues < 0 {
						w.stop(p.key)
					} else {
						w.keep(t.Context(), p.key, "1", p.requeues, []purge.Remaining{remaining("7", "a")})
					}
					synctest.Wait()
				}
				var open []string
				for of, watcher := range client.byKind {
					if !watcher.IsStopped() {
						open = append(open, of.namespace)
					}
				}
				slices.Sort(open)
				if !slices.Equal(open, tc.open) || w.open != len(tc.open) {
					t.Errorf("watches of %v are open (%d on the books), want %v", open, w.open, tc.open)
				}
				for _, key := range open {
					w.stop(key)
				}
				w.wait()
			})
		})
	}
}

// TestWatchOfFreshAmongStuck has more Namespaces stuck than there are watches. A Namespace that is
// deleted after them keeps its watch, and is worked on as soon as its content is gone.
func TestWatchOfFreshAmongStuck(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, 1, func(_ context.Context, b *bench, ns *v1.Namespace) error {
			r := remaining("7", "a")
			if ns.Name != "fresh" {
				r.Objects["a"] = []string{"example.com/stuck"}
			}
			return &purge.ContentRemainingError{Content: []purge.Remaining{r}}
		})
		defer b.stop()
		b.watches.max = 2
		for i := range 3 {
			b.create(terminating(fmt.Sprint("stuck-", i), types.UID(fmt.Sprint(i))))
		}
		time.Sleep(10 * time.Minute)
		b.create(terminating("fresh", "fresh"))
		synctest.Wait()
		opened := b.content.byKind[podsOf("fresh")]
		time.Sleep(100 * time.Second) // each of the others is retried
		synctest.Wait()
		if opened == nil || opened.IsStopped() || b.content.open() != 2 {
			t.Fatalf("the watch: %v, and %d watches are open", opened, b.content.open())
		}
		before := len(b.attemptsAt("fresh"))
		b.content.send(podsOf("fresh"), gone("a"))
		synctest.Wait()
		if got := len(b.attemptsAt("fresh")) - before; got != 1 {
			t.Errorf("%d passes when the content was gone, want one", got)
		}
	})
}
