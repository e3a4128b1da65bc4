// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package storage

import (
	"context"
	"strconv"
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/utils/ptr"
)

// decodedObjects are the objects of the watch cache of a cluster-scoped resource. The
// library's cache can be asked for a page only by its continue tokens, which counts all
// that follows, and for one object at about the cost of decoding it.
type decodedObjects struct {
	mu      sync.RWMutex
	objects map[string]runtime.Object // by name
}

// get returns the object with the name if the cache has this version of it, or nil. It must
// not be modified, because the cache has the same.
func (d *decodedObjects) get(name string, revision int64) runtime.Object {
	d.mu.RLock()
	obj := d.objects[name]
	d.mu.RUnlock()
	if obj == nil {
		return nil
	}
	object, err := meta.Accessor(obj)
	if err != nil || object.GetResourceVersion() != strconv.FormatInt(revision, 10) {
		return nil
	}
	return obj
}

func (d *decodedObjects) put(obj runtime.Object) {
	if object, err := meta.Accessor(obj); err == nil {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.objects[object.GetName()] = obj
	}
}

func (d *decodedObjects) remove(obj runtime.Object) {
	if object, err := meta.Accessor(obj); err == nil {
		d.mu.Lock()
		defer d.mu.Unlock()
		delete(d.objects, object.GetName())
	}
}

// reset forgets the objects when the cache begins with all of them: of those that it no
// longer has, there are no events.
func (d *decodedObjects) reset() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.objects = map[string]runtime.Object{}
}

// store returns the store for the watch cache. What the cache lists and watches is what it
// has then.
func (d *decodedObjects) store(of storage.Interface) storage.Interface {
	return decodedStore{of, d}
}

type decodedStore struct {
	storage.Interface
	decoded *decodedObjects
}

// GetList lists objects.
func (s decodedStore) GetList(ctx context.Context, key string, opts storage.ListOptions, list runtime.Object) error {
	if err := s.Interface.GetList(ctx, key, opts, list); err != nil {
		return err
	}
	if opts.Predicate.Continue == "" {
		s.decoded.reset()
	}
	return meta.EachListItem(list, func(obj runtime.Object) error {
		s.decoded.put(obj)
		return nil
	})
}

// Watch watches objects.
func (s decodedStore) Watch(ctx context.Context, key string, opts storage.ListOptions) (watch.Interface, error) {
	inner, err := s.Interface.Watch(ctx, key, opts)
	if err != nil {
		return nil, err
	}
	if ptr.Deref(opts.SendInitialEvents, false) {
		s.decoded.reset()
	}
	w := &decodedWatch{Interface: inner, events: make(chan watch.Event), stopped: make(chan struct{})}
	go w.run(s.decoded)
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

func (w *decodedWatch) run(decoded *decodedObjects) {
	defer close(w.events)
	for event := range w.Interface.ResultChan() {
		obj := event.Object
		if timed, ok := obj.(storage.WatchEventWithRecordTime); ok {
			obj = timed.Unwrap()
		}
		switch event.Type {
		case watch.Added, watch.Modified:
			decoded.put(obj)
		case watch.Deleted:
			decoded.remove(obj)
		}
		select {
		case w.events <- event:
		case <-w.stopped:
			return
		}
	}
}
