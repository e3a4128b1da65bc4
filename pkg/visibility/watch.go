// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package visibility

import (
	"context"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metainternalversion "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/endpoints/handlers/responsewriters"
	"k8s.io/apiserver/pkg/storage"
	utilflowcontrol "k8s.io/apiserver/pkg/util/flowcontrol"
	"k8s.io/utils/clock"

	"github.com/borough-io/borough/pkg/apis/tenancy"
	"github.com/borough-io/borough/pkg/authorization/rbac"
)

const (
	// bookmarkInterval is how often a watch gets a bookmark, as from the library.
	bookmarkInterval = time.Minute
	// bookmarkBeforeEnd is when a watch that ends at a time gets its last bookmark.
	bookmarkBeforeEnd = 2 * time.Second
	// initialChunk is how many of its initial Namespaces a watch reads while it holds the
	// lock. When many watches begin at once, a change waits for a chunk of each.
	initialChunk = 500
)

// Watch watches the Namespaces that the user sees and the predicate selects, from the
// revision of the options. As a watch of the library, it has a single event of type
// ERROR if it cannot begin: Expired if the revision is before the history, or Timeout if
// it is not reached in time. The error that Watch returns is BadRequest, for options
// that are not valid.
//
// A Namespace is ADDED when the user may see it and DELETED when no longer, at
// the revision of this change of the policy: with this resourceVersion if it is
// DELETED, and with that of the Namespace if it is ADDED, which a bookmark follows. Of
// several that are DELETED at one revision, only the last has it.
func (w *View) Watch(ctx context.Context, options *metainternalversion.ListOptions, predicate storage.SelectionPredicate) (watch.Interface, error) {
	begun, err := w.watch(ctx, options, predicate)
	if err == nil || apierrors.IsBadRequest(err) {
		return begun, err
	}
	events := make(chan watch.Event, 1)
	events <- watch.Event{Type: watch.Error, Object: responsewriters.ErrorToAPIStatus(err)}
	close(events)
	return watch.NewProxyWatcher(events), nil
}

// watch returns a watch that has begun.
func (w *View) watch(ctx context.Context, options *metainternalversion.ListOptions, predicate storage.SelectionPredicate) (watch.Interface, error) {
	initial := sendsInitialEvents(options)
	from, err := w.views.awaitResourceVersion(ctx, options.ResourceVersion)
	if err != nil {
		return nil, err
	}
	r := &watcher{
		View:      w,
		predicate: predicate,
		bookmarks: options.AllowWatchBookmarks,
		queue:     &queue{subjects: w.subjects, wake: make(chan struct{}, 1)},
		events:    make(chan watch.Event, 10),
	}
	v := w.views
	v.mu.RLock()
	position := v.reached
	if from != 0 && !initial { // the initial ones may be newer
		position, _ = v.positionsOf(from)
	}
	err = v.inHistory(position, options.ResourceVersion)
	v.mu.RUnlock()
	if err != nil {
		return nil, err
	}
	// Changes and other watches wait only for the last part.
	pushed := position
	for more := true; more; {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		pushed, more = v.pushPart(r.queue, pushed)
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if err := v.inHistory(position, options.ResourceVersion); err != nil {
		return nil, err
	}
	r.position, r.rights = position, w.rights(position)
	r.queue.rights = w.rights(v.reached)
	v.push(r.queue, v.since(pushed))
	v.watchers.add(r.queue)
	// Closing bookmarks are only for clients that have asked for initial events.
	closing := initial && options.SendInitialEvents != nil
	ctx, r.cancel = context.WithCancel(ctx)
	go r.run(ctx, initial, closing)
	return r, nil
}

// inHistory returns Expired if the position of a resourceVersion is before the history. The
// lock is held.
func (v *Views) inHistory(position int64, resourceVersion string) error {
	if oldest := v.oldest(); position < oldest {
		return apierrors.NewResourceExpired(fmt.Sprintf("too old resource version: %s (%d)", resourceVersion, v.revisionAt(oldest)))
	}
	return nil
}

// watcher is a watch of a view.
type watcher struct {
	*View
	predicate storage.SelectionPredicate
	bookmarks bool
	queue     *queue
	events    chan watch.Event
	cancel    context.CancelFunc

	// position is that up to which all events were sent, and rights are those by
	// ClusterRoleBindings at this position.
	position int64
	rights   rbac.ClusterRights
	// newest is the last Namespace that was sent with the revision of a change of rights.
	newest sent
}

// ResultChan implements watch.Interface.
func (r *watcher) ResultChan() <-chan watch.Event { return r.events }

// Stop implements watch.Interface.
func (r *watcher) Stop() { r.cancel() }

// run sends events until the watch ends, at first the initial ones, and a closing
// bookmark.
func (r *watcher) run(ctx context.Context, initial, closing bool) {
	defer close(r.events)
	defer r.cancel()
	defer func() {
		r.views.mu.Lock()
		defer r.views.mu.Unlock()
		r.views.watchers.remove(r.queue)
	}()
	if initial && !r.sendInitial(ctx, closing) {
		return
	}
	utilflowcontrol.WatchInitialized(ctx) // frees the seat of the request
	timer := clock.RealClock{}.NewTimer(untilBookmark(ctx))
	defer timer.Stop()
	bookmark := false // is due
	for {
		items, reached, expired := r.take()
		if expired {
			r.sendExpired(ctx)
			return
		}
		if !r.sendItems(ctx, items) {
			return
		}
		r.position = max(r.position, reached)
		// Everything until the position was sent.
		if bookmark && r.bookmarks && !r.sendBookmark(ctx, r.position, nil) {
			return
		}
		bookmark = false
		select {
		case <-r.queue.wake:
		case <-timer.C():
			bookmark = true
			timer.Reset(untilBookmark(ctx))
		case <-ctx.Done():
			return
		}
	}
}

// untilBookmark returns the time until the next bookmark.
func untilBookmark(ctx context.Context) time.Duration {
	if end, ok := ctx.Deadline(); ok {
		if left := time.Until(end) - bookmarkBeforeEnd; left > 0 && left < bookmarkInterval {
			return left
		}
	}
	return bookmarkInterval
}

// take returns what there is to look at until a position.
func (r *watcher) take() (items []item, reached int64, expired bool) {
	r.views.mu.Lock()
	defer r.views.mu.Unlock()
	items, r.queue.items = r.queue.items, nil
	return items, r.views.reached, r.queue.expired
}

// sendInitial sends the Namespaces that the user sees at the position of the watch, and a
// closing bookmark.
func (r *watcher) sendInitial(ctx context.Context, closing bool) bool {
	for name := range r.from("", r.position, initialChunk) {
		object := r.selected(name, r.visible(name, r.position, &r.rights))
		if r.lost(r.position) {
			return r.sendExpired(ctx)
		}
		if object != nil && !r.send(ctx, watch.Event{Type: watch.Added, Object: object}) {
			return false
		}
	}
	if r.lost(r.position) {
		return r.sendExpired(ctx) // there may have been more
	}
	if closing && r.bookmarks {
		return r.sendBookmark(ctx, r.position, map[string]string{metav1.InitialEventsAnnotationKey: "true"})
	}
	return true
}

// sendItems sends the events of the items, which are sorted by position.
func (r *watcher) sendItems(ctx context.Context, items []item) bool {
	for len(items) > 0 {
		if ctx.Err() != nil {
			return false // also if none of them results in an event
		}
		position := items[0].position
		end := slices.IndexFunc(items, func(i item) bool { return i.position != position })
		if end < 0 {
			end = len(items)
		}
		if !r.sendPosition(ctx, position, items[:end]) {
			return false
		}
		items = items[end:]
	}
	return true
}

// lost reports whether the history does not have a position any more. What was read
// from it then may be wrong.
func (r *watcher) lost(position int64) bool {
	r.views.mu.RLock()
	defer r.views.mu.RUnlock()
	return r.queue.expired || position < r.views.oldest()
}

// sendExpired sends an error with which the watch ends.
func (r *watcher) sendExpired(ctx context.Context) bool {
	status := apierrors.NewResourceExpired(fmt.Sprintf("the history after resource version %d is not available any more", r.revisionAt(r.position))).Status()
	r.send(ctx, watch.Event{Type: watch.Error, Object: &status})
	return false
}

func (r *watcher) sendBookmark(ctx context.Context, position int64, annotations map[string]string) bool {
	bookmark := r.object(&tenancy.Namespace{ObjectMeta: metav1.ObjectMeta{Annotations: annotations}}, 0)
	setRevision(bookmark, r.revisionAt(position))
	return r.send(ctx, watch.Event{Type: watch.Bookmark, Object: bookmark})
}

// send sends an event, and reports whether the watch continues.
func (r *watcher) send(ctx context.Context, event watch.Event) bool {
	select {
	case r.events <- event:
		return true
	case <-ctx.Done():
	}
	return false
}
