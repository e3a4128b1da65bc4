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

// decodedStore is the store of the watch cache of Namespaces. It passes the Namespaces that
// the cache gets to the backend, before the cache has them. The library's cache can be asked
// for a page only by its continue tokens, which counts all that follows, and for one object
// at about the cost of decoding it.
type decodedStore struct {
	storage.Interface
	backend *Backend
}

// GetList lists objects.
func (s decodedStore) GetList(ctx context.Context, key string, opts storage.ListOptions, list runtime.Object) error {
	if err := s.Interface.GetList(ctx, key, opts, list); err != nil {
		return err
	}
	return meta.EachListItem(list, func(obj runtime.Object) error {
		s.backend.decoded(obj)
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
	go w.run(s.backend)
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

func (w *decodedWatch) run(b *Backend) {
	defer close(w.events)
	for event := range w.Interface.ResultChan() {
		obj := event.Object
		if timed, ok := obj.(storage.WatchEventWithRecordTime); ok {
			obj = timed.Unwrap()
		}
		switch event.Type {
		case watch.Added, watch.Modified:
			b.decoded(obj)
		case watch.Deleted:
			b.deleted(obj)
		}
		select {
		case w.events <- event:
		case <-w.stopped:
			return
		}
	}
}

// decoded passes a Namespace that was decoded to the feed.
func (b *Backend) decoded(obj runtime.Object) {
	if b.feed != nil {
		b.feed.Decoded(obj)
	}
}

// deleted passes a Namespace that was deleted to the feed, and to the fence, because another
// server may have removed it.
func (b *Backend) deleted(obj runtime.Object) {
	if b.feed != nil {
		b.feed.Deleted(obj)
	}
	if namespace, err := meta.Accessor(obj); err == nil {
		b.fence.Removed(namespace.GetName())
	}
}
