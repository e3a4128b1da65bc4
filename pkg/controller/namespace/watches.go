// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package namespace

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/metadata"
	"k8s.io/klog/v2"

	"github.com/borough-io/borough/pkg/controller/namespace/purge"
)

// maxContentWatches bounds the watches that are open at once, for the server's
// sake. For another one, a watch ends whose Namespace was retried more often: it waits for
// what is most likely stuck. A Namespace without a watch is looked at by its backoff.
const maxContentWatches = 1000

// contentWatches watches content that remains in Namespaces and wakes the
// controller when it is gone, or has other finalizers.
type contentWatches struct {
	client metadata.Interface
	wake   func(key string, gone bool)
	// moved is called when an object or a finalizer of a Namespace was removed.
	moved  func(key string, uid types.UID)
	purged purge.PurgedFunc

	mu    sync.Mutex
	byKey map[string]map[schema.GroupVersionResource]*contentWatch
	open  int // the number of watches in byKey
	max   int // maxContentWatches, except in tests
	wg    sync.WaitGroup
}

func newContentWatches(client metadata.Interface, wake func(key string, gone bool), moved func(key string, uid types.UID), purged purge.PurgedFunc) *contentWatches {
	return &contentWatches{
		client: client,
		wake:   wake,
		moved:  moved,
		purged: purged,
		byKey:  map[string]map[schema.GroupVersionResource]*contentWatch{},
		max:    maxContentWatches,
	}
}

// contentWatch watches one kind in one Namespace.
type contentWatch struct {
	key      string
	uid      types.UID // of the Namespace
	resource schema.GroupVersionResource
	requeues int // of the Namespace, at its last pass
	cancel   context.CancelFunc

	// objects has the finalizers of the objects that remain, finalizers the
	// number of objects by finalizer. Both belong to the watch's goroutine.
	objects    map[types.UID][]string
	finalizers map[string]int
}

// keep has the given content of a Namespace, which was retried so many times, watched, and
// no other. What is watched already stays so.
func (w *contentWatches) keep(ctx context.Context, key string, uid types.UID, requeues int, content []purge.Remaining) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for gvr, old := range w.byKey[key] {
		stays := old.uid == uid && slices.ContainsFunc(content, func(r purge.Remaining) bool { return r.GroupVersionResource == gvr })
		if !stays {
			w.end(old)
			continue
		}
		old.requeues = requeues
	}
	for _, r := range content {
		if !r.Watch || w.byKey[key][r.GroupVersionResource] != nil || ctx.Err() != nil {
			continue
		}
		if w.open < w.max || w.makeRoom(requeues) {
			w.start(ctx, key, uid, requeues, r)
		}
	}
}

// makeRoom ends a watch of the Namespace that was retried most often, and reports whether
// one was retried more often than the number. The lock is held.
func (w *contentWatches) makeRoom(requeues int) bool {
	var most *contentWatch
	for _, watches := range w.byKey {
		for _, cw := range watches {
			if cw.requeues > requeues {
				most, requeues = cw, cw.requeues
			}
		}
	}
	if most == nil {
		return false
	}
	w.end(most)
	return true
}

// stop ends all watches of a Namespace.
func (w *contentWatches) stop(key string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, old := range w.byKey[key] {
		w.end(old)
	}
}

// wait returns when all watches have ended; their context must have.
func (w *contentWatches) wait() { w.wg.Wait() }

// start opens a watch. The lock is held.
func (w *contentWatches) start(ctx context.Context, key string, uid types.UID, requeues int, r purge.Remaining) {
	ctx, cancel := context.WithCancel(ctx)
	cw := &contentWatch{
		key: key, uid: uid, resource: r.GroupVersionResource, requeues: requeues, cancel: cancel,
		// A copy, because the caller may still read the content to log it.
		objects: maps.Clone(r.Objects), finalizers: map[string]int{},
	}
	for _, finalizers := range r.Objects {
		for _, f := range finalizers {
			cw.finalizers[f]++
		}
	}
	if w.byKey[key] == nil {
		w.byKey[key] = map[schema.GroupVersionResource]*contentWatch{}
	}
	w.byKey[key][cw.resource] = cw
	w.open++
	w.wg.Go(func() {
		w.run(ctx, cw, r.ResourceVersion)
		w.remove(cw)
	})
}

// end closes a watch and removes it from byKey, once. The lock is held.
func (w *contentWatches) end(cw *contentWatch) {
	cw.cancel()
	watches := w.byKey[cw.key]
	if watches[cw.resource] != cw {
		return
	}
	w.open--
	delete(watches, cw.resource)
	if len(watches) == 0 {
		delete(w.byKey, cw.key)
	}
}

// run follows the content from the list at the resourceVersion on. It returns
// when nothing is left, when something new has to be deleted, or when the watch
// breaks: the next pass begins with a list.
func (w *contentWatches) run(ctx context.Context, cw *contentWatch, resourceVersion string) {
	logger := klog.FromContext(ctx).WithValues("resource", cw.resource.GroupResource())
	events, err := w.client.Resource(cw.resource).Namespace(cw.key).Watch(ctx, metav1.ListOptions{ResourceVersion: resourceVersion})
	if err != nil {
		if ctx.Err() == nil {
			logger.V(2).Info("Could not watch what remains in the namespace", "err", err)
		}
		return
	}
	defer events.Stop()
	opened := time.Now()
	for {
		select {
		case <-ctx.Done():
			return
		case event, ok := <-events.ResultChan():
			if !ok {
				w.broke(ctx, cw, opened)
				return
			}
			if event.Type == watch.Error {
				logger.V(2).Info("The watch of what remains in the namespace broke", "err", apierrors.FromObject(event.Object))
				w.broke(ctx, cw, opened)
				return
			}
			object, ok := event.Object.(*metav1.PartialObjectMetadata)
			if !ok {
				continue
			}
			before := len(cw.objects[object.UID])
			wake, end := cw.observe(event.Type, object)
			if event.Type == watch.Deleted || len(cw.objects[object.UID]) < before {
				w.moved(cw.key, cw.uid)
			}
			if event.Type == watch.Deleted {
				w.purged(cw.resource, 1)
			}
			if end {
				w.remove(cw)
			}
			if wake {
				w.wake(cw.key, len(cw.objects) == 0)
			}
			if end {
				return
			}
		}
	}
}

// broke wakes the controller because a watch that lasted has broken, as all do when a
// server restarts: what happens from now on would be noticed only after the backoff. A
// watch that broke sooner is left to the backoff, so that one pass does not follow
// another.
func (w *contentWatches) broke(ctx context.Context, cw *contentWatch, opened time.Time) {
	if ctx.Err() == nil && time.Since(opened) >= retryMaxDelay {
		w.remove(cw)
		w.wake(cw.key, false)
	}
}

// remove closes a watch. It has to be called before the controller is woken, because the
// pass may watch the content again.
func (w *contentWatches) remove(cw *contentWatch) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.end(cw)
}

// observe records an event. It reports whether the controller has to process the
// Namespace, because of a change that it acts on or that the status reports, and
// whether there is nothing left to watch. A smaller number of objects is not such a
// change while some remain: the status is updated with the backoff, because otherwise
// each object that is removed would cost a list of the others.
func (cw *contentWatch) observe(event watch.EventType, object *metav1.PartialObjectMetadata) (wake, end bool) {
	before, known := cw.objects[object.UID]
	after := purge.Finalizers(object)
	if event == watch.Deleted {
		after = nil
		delete(cw.objects, object.UID)
	} else {
		if !known && object.DeletionTimestamp == nil {
			return true, true
		}
		cw.objects[object.UID] = after
	}
	// Finalizers are added before they are removed, so that one that stays is no change.
	for _, f := range after {
		if cw.finalizers[f]++; cw.finalizers[f] == 1 {
			wake = true
		}
	}
	for _, f := range before {
		if cw.finalizers[f]--; cw.finalizers[f] == 0 {
			delete(cw.finalizers, f)
			wake = true
		}
	}
	end = len(cw.objects) == 0
	return wake || end, end
}
