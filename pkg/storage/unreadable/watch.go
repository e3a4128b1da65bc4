// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package unreadable

import (
	"context"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/klog/v2"
)

// Watch watches the objects that can be read.
//
// For a watch cache, which has the previous state of the object, an event with an
// object that cannot be read becomes the deletion of that object. Other watches need
// the previous state in the event, so for them the library must decode that too, as
// it does for every watch with a selector.
func (s *Store) Watch(ctx context.Context, key string, opts storage.ListOptions) (watch.Interface, error) {
	if !s.config.Cached {
		ctx = WithoutCache(ctx)
	}
	if IsWithoutCache(ctx) {
		opts.Predicate = s.readable(opts.Predicate)
	}
	from, err := s.startOf(opts)
	if err != nil {
		return nil, err
	}
	inner, err := s.Interface.Watch(context.WithValue(ctx, readerKey{}, watching{}), key, opts)
	if err != nil {
		return nil, err
	}
	w := &watcher{
		Interface: inner,
		logger:    klog.FromContext(ctx),
		store:     s,
		bookmarks: opts.ProgressNotify || opts.Predicate.AllowWatchBookmarks,
		result:    make(chan watch.Event, resultBuffer),
		expired:   make(chan struct{}),
		stopped:   make(chan struct{}),
	}
	s.mu.Lock()
	s.watches[w] = struct{}{}
	if from > 0 && from < s.recovered {
		w.expire()
	}
	s.mu.Unlock()
	go w.run()
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

// IsWithoutCache reports whether a context is one of WithoutCache. Those of the watches of a
// Store whose resource has no watch cache are.
func IsWithoutCache(ctx context.Context) bool {
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
			s.suspect(unread.key)
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

// resultBuffer is the number of buffered events of a watch, as in the library.
const resultBuffer = 100

// watcher is the library's watch without the objects that cannot be read.
type watcher struct {
	watch.Interface
	logger    klog.Logger
	store     *Store
	bookmarks bool // were asked for
	result    chan watch.Event

	expired, stopped     chan struct{}
	expireOnce, stopOnce sync.Once
}

// ResultChan returns the events.
func (w *watcher) ResultChan() <-chan watch.Event { return w.result }

// Stop ends the watch.
func (w *watcher) Stop() {
	w.stopOnce.Do(func() { close(w.stopped) })
	w.Interface.Stop()
}

// expire ends the watch with the error 410, after which the client lists again.
func (w *watcher) expire() { w.expireOnce.Do(func() { close(w.expired) }) }

func (w *watcher) run() {
	defer func() {
		w.Interface.Stop()
		w.store.mu.Lock()
		delete(w.store.watches, w)
		w.store.mu.Unlock()
		close(w.result)
	}()
	for {
		select {
		case event, ok := <-w.Interface.ResultChan():
			if !ok {
				return
			}
			if event, ok = w.translate(event); ok && !w.send(event) {
				return
			}
		case <-w.expired:
			status := apierrors.NewResourceExpired("objects that could not be read from storage can be read again").Status()
			w.send(watch.Event{Type: watch.Error, Object: &status})
			return
		}
	}
}

func (w *watcher) send(event watch.Event) bool {
	select {
	case w.result <- event:
		return true
	case <-w.stopped:
		return false
	}
}

// translate returns the event to send, and whether there is one.
func (w *watcher) translate(event watch.Event) (watch.Event, bool) {
	if event.Type == watch.Bookmark {
		// Etcd sends the progress that was requested for one watch to all watches of a stream.
		return event, w.bookmarks
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
			if read, err := meta.Accessor(obj); err == nil {
				// The watch may be behind a list that has found the object unreadable.
				revision, _ := s.config.Versioner.ObjectResourceVersion(obj)
				s.config.Objects.remove(w.logger, s.config.Resource, read.GetNamespace(), read.GetName(), int64(revision))
			}
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
	namespace, name := s.split(unread.key)
	deleted := s.config.NewFunc()
	accessor, err := meta.Accessor(deleted)
	if err != nil {
		return event, false
	}
	accessor.SetNamespace(namespace)
	accessor.SetName(name)
	accessor.SetResourceVersion(unread.ResourceVersion)
	return watch.Event{Type: watch.Deleted, Object: deleted}, true
}
