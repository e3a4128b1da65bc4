// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package storage

import (
	"context"

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
	ctx, cancel := context.WithCancel(ctx)
	inner, err := s.Interface.Watch(ctx, key, opts)
	if err != nil {
		cancel()
		return nil, err
	}
	w := &decodedWatch{inner: inner, events: make(chan watch.Event), cancel: cancel}
	go w.run(ctx, s.backend)
	return w, nil
}

type decodedWatch struct {
	inner  watch.Interface
	events chan watch.Event
	cancel context.CancelFunc
}

// ResultChan returns the events.
func (w *decodedWatch) ResultChan() <-chan watch.Event { return w.events }

// Stop ends the watch.
func (w *decodedWatch) Stop() { w.cancel() }

func (w *decodedWatch) run(ctx context.Context, b *Backend) {
	defer close(w.events)
	defer w.cancel()
	defer w.inner.Stop()
	for event := range w.inner.ResultChan() {
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
		case <-ctx.Done():
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
