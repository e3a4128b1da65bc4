// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"fmt"
	"strconv"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	v1 "github.com/borough-io/borough/pkg/apis/tenancy/v1"
	"github.com/borough-io/borough/test/poll"
)

// watcher watches the Pods of a load, and continues where a watch ends.
type watcher struct {
	load *load

	mu       sync.Mutex
	last     uint64          // version of the last event or bookmark
	versions map[uint64]bool // of the events
	deleted  map[types.UID]bool
	// doubled are the events that are not later than the one before.
	doubled int
	// ended counts the watches that were open, expired those that had to list again.
	// Between skipped pairs of versions a watch could not see events.
	ended, expired int
	skipped        [][2]uint64
}

func newWatcher(l *load, from string) *watcher {
	last, err := strconv.ParseUint(from, 10, 64)
	if err != nil {
		panic(err) // all are revisions of etcd
	}
	return &watcher{load: l, last: last, versions: map[uint64]bool{}, deleted: map[types.UID]bool{}}
}

// run watches until the context ends.
func (w *watcher) run(ctx context.Context) {
	for ctx.Err() == nil {
		watching, err := w.load.watchRequest(w.last).Watch(ctx)
		if err == nil {
			w.load.count("watch", nil)
			err = w.follow(watching)
			watching.Stop()
			w.mu.Lock()
			w.ended++
			w.mu.Unlock()
		}
		if ctx.Err() != nil {
			return
		}
		if apierrors.IsResourceExpired(err) || apierrors.IsGone(err) {
			err = w.relist(ctx)
		}
		if err != nil {
			w.load.count("watch", err)
		}
		_ = poll.Sleep(ctx, pause)
	}
}

// follow records events until the watch ends.
func (w *watcher) follow(watching watch.Interface) error {
	for event := range watching.ResultChan() {
		if event.Type == watch.Error {
			return apierrors.FromObject(event.Object)
		}
		object, err := meta.Accessor(event.Object)
		if err != nil {
			return err
		}
		w.mu.Lock()
		at := version(object)
		if event.Type != watch.Bookmark {
			if at <= w.last {
				w.doubled++
			}
			w.versions[at] = true
			if event.Type == watch.Deleted {
				w.deleted[object.GetUID()] = true
			}
		}
		w.last = max(w.last, at)
		w.mu.Unlock()
	}
	return nil
}

// relist continues from a list, because the server no longer has the events after
// the last one.
func (w *watcher) relist(ctx context.Context) error {
	var list v1.PodList
	err := w.load.client.Get().Namespace(w.load.home).Resource("pods").MaxRetries(0).Do(ctx).Into(&list)
	w.load.count("list", err)
	if err != nil {
		return nil // counted; the next watch expires again
	}
	at, err := strconv.ParseUint(list.ResourceVersion, 10, 64)
	if err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.expired++
	w.skipped = append(w.skipped, [2]uint64{w.last, at})
	w.last = at
	return nil
}

// compare returns an error if an event of an acknowledged write is missing, or if an
// event was doubled.
func (w *watcher) compare(pods map[types.UID]*written) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	lost := 0
	for uid, o := range pods {
		for _, v := range o.versions {
			if !w.versions[v] && !w.skips(v) {
				lost++
			}
		}
		// The version of the deletion is unknown.
		if o.deleted && !w.deleted[uid] && len(w.skipped) == 0 {
			lost++
		}
	}
	if lost+w.doubled > 0 {
		return fmt.Errorf("%d events lost, %d doubled", lost, w.doubled)
	}
	return nil
}

func (w *watcher) skips(v uint64) bool {
	for _, s := range w.skipped {
		if s[0] < v && v <= s[1] {
			return true
		}
	}
	return false
}

func (w *watcher) String() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return fmt.Sprintf("%d events, %d doubled, ended %d times, expired %d times", len(w.versions), w.doubled, w.ended, w.expired)
}
