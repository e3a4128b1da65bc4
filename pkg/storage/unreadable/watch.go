// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package unreadable

import (
	"context"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/klog/v2"

	"github.com/borough-io/borough/pkg/storage/etcdwatch"
)

// Watch watches the objects that can be read.
//
// For a watch cache, which has the previous state of the object, an event with an
// object that cannot be read becomes the deletion of that object. Other watches need
// the previous state in the event, so for them the library must decode that too, as
// it does for every watch with a selector.
func (s *Store) Watch(ctx context.Context, key string, opts storage.ListOptions) (watch.Interface, error) {
	from, err := s.startOf(opts)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.WithValue(ctx, readerKey{}, watching{}))
	if from > 0 {
		ctx = etcdwatch.WithContinued(ctx)
	}
	w := &watcher{
		logger:    klog.FromContext(ctx),
		store:     s,
		cancel:    cancel,
		bookmarks: opts.ProgressNotify || opts.Predicate.AllowWatchBookmarks,
		result:    make(chan watch.Event, 1), // for the error of expire
		expired:   make(chan struct{}),
		held:      make(chan struct{}),
	}
	if !s.config.Cached || isWithoutCache(ctx) {
		opts.Predicate = s.readable(opts.Predicate)
		w.flow = etcdwatch.NewFlow(w.expire)
		ctx = etcdwatch.WithFlow(ctx, w.flow)
	}
	inner, err := s.Interface.Watch(ctx, key, opts)
	if err != nil {
		cancel()
		return nil, err
	}
	s.mu.Lock()
	s.watches[w] = struct{}{}
	if s.expiring {
		w.hold()
	}
	if from > 0 && from < s.recovered {
		w.expire(recoveredReason)
	} else if w.flow == nil { // of the watch cache
		s.listed(ctx, from)
	}
	s.mu.Unlock()
	go w.run(ctx, inner.ResultChan())
	return w, nil
}

// startOf returns the revision after which a watch starts, or 0 if it starts with all
// objects.
func (s *Store) startOf(opts storage.ListOptions) (int64, error) {
	if opts.SendInitialEvents != nil && *opts.SendInitialEvents {
		return 0, nil
	}
	revision, err := s.config.Versioner.ParseResourceVersion(opts.ResourceVersion)
	return int64(revision), err
}

// WithoutCache returns a context for a watch that is not that of a watch cache.
func WithoutCache(ctx context.Context) context.Context {
	return context.WithValue(ctx, withoutCacheKey{}, true)
}

type withoutCacheKey struct{}

// isWithoutCache reports whether a context is one of WithoutCache.
func isWithoutCache(ctx context.Context) bool {
	without, _ := ctx.Value(withoutCacheKey{}).(bool)
	return without
}

// readable returns a predicate that no placeholder matches, and that is not empty,
// so that the library compares the previous state of an object with the current one.
// An object that becomes unreadable is then deleted, and added when it is readable
// again, like an object whose labels change.
func (s *Store) readable(predicate storage.SelectionPredicate) storage.SelectionPredicate {
	attributes := predicate.GetAttrs
	if attributes == nil {
		attributes = storage.DefaultNamespaceScopedAttr
	}
	predicate.GetAttrs = func(obj runtime.Object) (labels.Set, fields.Set, error) {
		if unread, ok := obj.(*placeholder); ok {
			// It can also be the previous state of the object: the library gives it the revision
			// of the event.
			revision, _ := s.config.Versioner.ObjectResourceVersion(unread)
			s.suspect(suspect{unread.key, int64(revision)})
			return nil, nil, unread.err
		}
		return attributes(obj)
	}
	if predicate.Label == nil {
		predicate.Label = labels.Everything()
	}
	if predicate.Field == nil || predicate.Label.Empty() && predicate.Field.Empty() {
		predicate.Field = fields.OneTermNotEqualSelector("metadata.name", "")
	}
	return predicate
}

// readTimeout is how long a watch that is not that of a watch cache, which has a timeout of its
// own, waits for its client to read an event. A list must be read in about the same time.
const readTimeout = time.Minute

// recoveredReason is the reason for which expireWatches ends watches.
const recoveredReason = "objects that could not be read from storage can be read again"

// watcher is the library's watch without the objects that cannot be read. It has no
// reference to the library's watch, which keeps its buffers after its end.
type watcher struct {
	logger    klog.Logger
	store     *Store
	cancel    context.CancelFunc
	flow      *etcdwatch.Flow // or nil
	bookmarks bool            // were asked for
	result    chan watch.Event

	expired    chan struct{}
	expireOnce sync.Once
	reason     string // why it has expired

	held     chan struct{} // closed by hold
	holdOnce sync.Once
}

// ResultChan returns the events.
func (w *watcher) ResultChan() <-chan watch.Event { return w.result }

// Stop ends the watch.
func (w *watcher) Stop() { w.cancel() }

// expire ends the watch with the error 410, after which the client lists again.
func (w *watcher) expire(reason string) {
	w.expireOnce.Do(func() {
		w.reason = reason
		close(w.expired)
	})
}

// hold makes the watch pass no event on that it has not received yet, until it expires.
func (w *watcher) hold() { w.holdOnce.Do(func() { close(w.held) }) }

// run passes events on until the watch ends. It does not wait for a client that does not
// read the last event.
func (w *watcher) run(ctx context.Context, events <-chan watch.Event) {
	defer close(w.result)
	w.pass(ctx, events)
	w.cancel()
	w.store.mu.Lock()
	delete(w.store.watches, w)
	w.store.mu.Unlock()
	select {
	case <-w.expired:
		select {
		case <-w.result: // the client lists again
		default:
		}
		status := apierrors.NewResourceExpired(w.reason).Status()
		w.result <- watch.Event{Type: watch.Error, Object: &status}
	default:
	}
}

func (w *watcher) pass(ctx context.Context, events <-chan watch.Event) {
	for {
		select {
		case event, ok := <-events:
			if !ok {
				return
			}
			select {
			case <-w.held: // it can be later than what holds the watch
				select {
				case <-w.expired:
				case <-ctx.Done():
				}
				return
			default:
			}
			if event, ok = w.translate(event); !ok {
				continue
			}
			if !w.send(ctx, event) {
				return
			}
		case <-w.expired:
			return
		case <-ctx.Done():
			return
		}
	}
}

// send passes an event on, and reports whether the client has read the one before in time. The
// library keeps hundreds of objects behind the event.
func (w *watcher) send(ctx context.Context, event watch.Event) bool {
	select {
	case w.result <- event:
		return true
	default:
	}
	var late <-chan time.Time
	if w.flow != nil {
		timer := time.NewTimer(readTimeout)
		defer timer.Stop()
		late = timer.C
	}
	select {
	case w.result <- event:
		return true
	case <-late:
		w.expire("the client of the watch does not read")
	case <-w.expired:
	case <-ctx.Done():
	}
	return false
}

// translate returns the event to send, and whether there is one.
func (w *watcher) translate(event watch.Event) (watch.Event, bool) {
	if event.Type == watch.Bookmark {
		w.noteInitialEvents(event.Object)
		// For watch caches, etcd sends the progress that was requested for one watch to all watches
		// of a stream.
		return event, !w.isMark(event.Object) && w.bookmarks
	}
	s, ctx := w.store, klog.NewContext(context.Background(), w.logger)
	obj := event.Object
	if timed, ok := obj.(storage.WatchEventWithRecordTime); ok {
		obj = timed.Unwrap()
	}
	unread, ok := obj.(*placeholder)
	switch {
	case !ok:
		if event.Type != watch.Error && s.config.Objects.any(s.config.Resource) {
			w.removeRecord(event.Type, obj)
		}
		return event, true
	case event.Type == watch.Deleted:
		s.forget(ctx, unread.key)
	default:
		revision, _ := s.config.Versioner.ObjectResourceVersion(unread)
		s.note(ctx, unread.key, int64(revision), unread.err)
	}
	if event.Type == watch.Added {
		return event, false
	}
	deleted, err := s.removed(unread.key, unread.ResourceVersion)
	if err != nil {
		return event, false
	}
	return watch.Event{Type: watch.Deleted, Object: deleted}, true
}

// removeRecord removes the record of an object that was read, or deleted.
func (w *watcher) removeRecord(event watch.EventType, obj runtime.Object) {
	if event == watch.Deleted && w.flow != nil {
		return // it can have become unreadable, see readable; otherwise examine removes the record
	}
	read, err := meta.Accessor(obj)
	if err != nil {
		return
	}
	// The watch may be behind a list that has found the object unreadable.
	revision, _ := w.store.config.Versioner.ObjectResourceVersion(obj)
	if event == watch.Deleted {
		revision = latest
	}
	w.store.config.Objects.remove(w.logger, w.store.config.Resource, read.GetNamespace(), read.GetName(), int64(revision))
}

// removed returns the object in the deletion of a key for a watch cache, which has the object
// itself.
func (s *Store) removed(key, resourceVersion string) (runtime.Object, error) {
	obj := s.config.NewFunc()
	accessor, err := meta.Accessor(obj)
	if err != nil {
		return nil, err
	}
	namespace, name := s.split(key)
	accessor.SetNamespace(namespace)
	accessor.SetName(name)
	accessor.SetResourceVersion(resourceVersion)
	return obj, nil
}

// isMark reports whether a bookmark is a mark of the flow.
func (w *watcher) isMark(bookmark runtime.Object) bool {
	if w.flow == nil {
		return false
	}
	revision, err := w.store.config.Versioner.ObjectResourceVersion(bookmark)
	return err == nil && w.flow.Pass(revision)
}

// noteInitialEvents records that a watch cache has all objects of a revision, if the bookmark is
// that which ends the initial events of its watch.
func (w *watcher) noteInitialEvents(bookmark runtime.Object) {
	if w.flow != nil {
		return // not of a watch cache
	}
	object, err := meta.Accessor(bookmark)
	if err != nil || object.GetAnnotations()[metav1.InitialEventsAnnotationKey] != "true" {
		return
	}
	s := w.store
	revision, err := s.config.Versioner.ObjectResourceVersion(bookmark)
	if err != nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.listed(klog.NewContext(context.Background(), w.logger), int64(revision))
}
