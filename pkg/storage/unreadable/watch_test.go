// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package unreadable

import (
	"context"
	"errors"
	goruntime "runtime"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/klog/v2"

	"github.com/borough-io/borough/pkg/apis/tenancy"
	"github.com/borough-io/borough/pkg/storage/etcdwatch"
)

// TestRecordStays checks that events of when an object could be read do not remove its record.
func TestRecordStays(t *testing.T) {
	pod := &tenancy.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "town", Name: "p"}}
	for name, tc := range map[string]struct {
		recorded int64 // the revision, 0 if it is not known
		event    watch.EventType
		revision string
		cache    bool // the watch is that of a watch cache
		removed  bool
	}{
		"it has become unreadable":         {5, watch.Deleted, "5", false, false},
		"it was created, and is not known": {0, watch.Added, "3", true, false},
		"it was created":                   {5, watch.Added, "3", true, false},
		"it is readable again":             {5, watch.Added, "6", true, true},
		"it was deleted":                   {5, watch.Deleted, "6", true, true},
	} {
		t.Run(name, func(t *testing.T) {
			s, _ := newPodStore(t)
			objects := s.config.Objects
			objects.put(klog.Background(), Object{Resource: s.config.Resource, Namespace: "town", Name: "p", Key: "/pods/town/p", revision: tc.recorded})
			event := pod.DeepCopy()
			event.ResourceVersion = tc.revision
			w := &watcher{store: s, logger: klog.Background()}
			if !tc.cache {
				w.flow = etcdwatch.NewFlow(w.expire)
			}
			w.translate(watch.Event{Type: tc.event, Object: event})
			if removed := !objects.any(s.config.Resource); removed != tc.removed {
				t.Errorf("removed: %t, want %t", removed, tc.removed)
			}
		})
	}
}

// TestSuspectOfWatch shows that a watch that leaves an object out says at which revision.
func TestSuspectOfWatch(t *testing.T) {
	s, _ := newPodStore(t)
	unread := &placeholder{key: benchKey, err: errors.New("no key")}
	unread.ResourceVersion = "5"
	if _, _, err := s.readable(storage.Everything).GetAttrs(unread); err == nil {
		t.Error("the object matches")
	}
	if got, want := <-s.suspects, (suspect{benchKey, 5}); got != want {
		t.Errorf("got %v, want %v", got, want)
	}
}

// TestListedByWatch shows that records end when a watch cache has got the objects as initial
// events.
func TestListedByWatch(t *testing.T) {
	for _, tc := range []struct {
		annotation, revision string
		stays                bool
	}{{"true", "7", false}, {"true", "6", true}, {"", "7", true}} {
		s, _ := newPodStore(t)
		s.note(t.Context(), benchKey, 5, errors.New("no key"))
		s.config.NextRevision = func(context.Context) (int64, error) { return 7, nil }
		s.config.Cached = true
		s.expireWatches(t.Context(), benchKey)
		bookmark := &tenancy.Pod{ObjectMeta: metav1.ObjectMeta{ResourceVersion: tc.revision, Annotations: map[string]string{metav1.InitialEventsAnnotationKey: tc.annotation}}}
		w := &watcher{store: s, logger: klog.Background(), bookmarks: true}
		w.translate(watch.Event{Type: watch.Bookmark, Object: bookmark})
		if stays := s.isAwaited(benchKey); stays != tc.stays || s.config.Objects.any(s.config.Resource) != tc.stays {
			t.Errorf("%+v: awaited: %t", tc, stays)
		}
	}
}

// progressing is a library whose watches send a bookmark and an object.
type progressing struct{ Library }

func (progressing) Watch(context.Context, string, storage.ListOptions) (watch.Interface, error) {
	w := watch.NewFakeWithChanSize(2, false)
	w.Action(watch.Bookmark, &tenancy.Pod{})
	w.Action(watch.Added, &tenancy.Pod{})
	return w, nil
}

// TestBookmarks checks that only watches that ask for bookmarks get them. The library also
// makes one of the progress that was requested for another watch.
func TestBookmarks(t *testing.T) {
	s, _ := newPodStore(t)
	s.Interface = progressing{}
	for name, test := range map[string]struct {
		options storage.ListOptions
		want    watch.EventType
	}{
		"none":               {storage.ListOptions{}, watch.Added},
		"of a watch cache":   {storage.ListOptions{ProgressNotify: true}, watch.Bookmark},
		"of an initial list": {storage.ListOptions{Predicate: storage.SelectionPredicate{AllowWatchBookmarks: true}}, watch.Bookmark},
	} {
		t.Run(name, func(t *testing.T) {
			w, err := s.Watch(t.Context(), "/", test.options)
			if err != nil {
				t.Fatal(err)
			}
			defer w.Stop()
			if event := <-w.ResultChan(); event.Type != test.want {
				t.Errorf("the first event is %s, want %s", event.Type, test.want)
			}
		})
	}
}

// watchingLibrary is a library with one watch.
type watchingLibrary struct {
	Library
	watch *watch.FakeWatcher
}

func (l watchingLibrary) Watch(context.Context, string, storage.ListOptions) (watch.Interface, error) {
	return l.watch, nil
}

// TestExpiredBeforeProgress checks that a watch ends before it reaches the revision from which on
// lists have what can be read again: a client could continue there.
func TestExpiredBeforeProgress(t *testing.T) {
	for range 100 {
		s, _ := newPodStore(t)
		library := watchingLibrary{watch: watch.NewFake()}
		s.Interface = library
		w, err := s.Watch(t.Context(), "/", storage.ListOptions{ProgressNotify: true})
		if err != nil {
			t.Fatal(err)
		}
		first := make(chan watch.Event, 1)
		go func() { first <- <-w.ResultChan() }()
		s.config.NextRevision = func(context.Context) (int64, error) {
			library.watch.Action(watch.Bookmark, &tenancy.Pod{}) // of this revision
			for range 100 {
				goruntime.Gosched()
			}
			return 7, nil
		}
		s.expireWatches(t.Context(), "/a/b")
		if event := <-first; event.Type != watch.Error {
			t.Fatalf("the first event is %s", event.Type)
		}
		w.Stop()
	}
}

// TestUnreadWatchEnds has watches that their clients do not read. Those that are served from
// storage end, and the last that their clients get is the error.
func TestUnreadWatchEnds(t *testing.T) {
	for name, flow := range map[string]bool{"of a client": true, "of a watch cache": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				w := &watcher{
					store: &Store{watches: map[*watcher]struct{}{}}, cancel: cancel,
					result: make(chan watch.Event, 1), expired: make(chan struct{}), held: make(chan struct{}),
				}
				w.store.config.Objects = NewObjects()
				w.store.config.Objects.add(w.store.config.Resource)
				if flow {
					w.flow = etcdwatch.NewFlow(w.expire)
				}
				events := make(chan watch.Event, 2)
				for range cap(events) {
					events <- watch.Event{Type: watch.Added, Object: &tenancy.Pod{}}
				}
				go w.run(ctx, events)
				synctest.Wait() // one event is in the result, the other one waits
				time.Sleep(2 * readTimeout)
				synctest.Wait()
				switch event := <-w.ResultChan(); {
				case flow && !apierrors.IsResourceExpired(apierrors.FromObject(event.Object)):
					t.Errorf("got %v %v, want the error Expired", event.Type, event.Object)
				case !flow && event.Type != watch.Added:
					t.Errorf("got %v %v, want the event", event.Type, event.Object)
				}
				if ended := ctx.Err() != nil; ended != flow {
					t.Errorf("the watch has ended: %t, want %t", ended, flow)
				}
			})
		})
	}
}
