// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package storage

import (
	"context"
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/storage"
)

// follower gets objects of a watch cache: those that were decoded, and those that were
// deleted.
type follower interface {
	Decoded(obj runtime.Object)
	Deleted(obj runtime.Object)
}

// decodedStore is the store of a watch cache. It passes the objects that the cache gets to
// a follower, before the cache has them. The library's cache can be asked for a page only by
// its continue tokens, which counts all that follows, and for one object at about the cost
// of decoding it.
type decodedStore struct {
	storage.Interface
	follower follower
}

// GetList lists objects.
func (s decodedStore) GetList(ctx context.Context, key string, opts storage.ListOptions, list runtime.Object) error {
	if err := s.Interface.GetList(ctx, key, opts, list); err != nil {
		return err
	}
	return meta.EachListItem(list, func(obj runtime.Object) error {
		s.follower.Decoded(obj)
		return nil
	})
}

// Watch watches objects.
func (s decodedStore) Watch(ctx context.Context, key string, opts storage.ListOptions) (watch.Interface, error) {
	inner, err := s.Interface.Watch(ctx, key, opts)
	if err != nil {
		return nil, err
	}
	w := &decodedWatch{Interface: inner, events: make(chan watch.Event), stopped: make(chan struct{})}
	go w.run(s.follower)
	return w, nil
}

type decodedWatch struct {
	watch.Interface
	events  chan watch.Event
	stopped chan struct{}
	once    sync.Once
}

// ResultChan returns the events.
func (w *decodedWatch) ResultChan() <-chan watch.Event { return w.events }

// Stop ends the watch.
func (w *decodedWatch) Stop() {
	w.once.Do(func() { close(w.stopped) })
	w.Interface.Stop()
}

func (w *decodedWatch) run(f follower) {
	defer close(w.events)
	for event := range w.Interface.ResultChan() {
		obj := event.Object
		if timed, ok := obj.(storage.WatchEventWithRecordTime); ok {
			obj = timed.Unwrap()
		}
		switch event.Type {
		case watch.Added, watch.Modified:
			f.Decoded(obj)
		case watch.Deleted:
			f.Deleted(obj)
		}
		select {
		case w.events <- event:
		case <-w.stopped:
			return
		}
	}
}

// namespaceFollower follows the watch cache of Namespaces: for the feed, and for the fence,
// because another server may have removed a Namespace.
type namespaceFollower struct{ *Backend }

// Decoded implements follower.
func (f namespaceFollower) Decoded(obj runtime.Object) {
	if f.feed != nil {
		f.feed.Decoded(obj)
	}
}

// Deleted implements follower.
func (f namespaceFollower) Deleted(obj runtime.Object) {
	if f.feed != nil {
		f.feed.Deleted(obj)
	}
	if namespace, err := meta.Accessor(obj); err == nil {
		f.fence.Removed(namespace.GetName())
	}
}
