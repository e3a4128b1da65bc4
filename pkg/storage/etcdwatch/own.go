// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package etcdwatch

import (
	"context"
	"errors"
	"slices"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/klog/v2"
)

const (
	// maxReopens is how often a watch is opened again in a row: for 20 to 30 seconds altogether,
	// as long as a watch cache tries.
	maxReopens = 9
	// maxReopenDelay is the longest time between two attempts. A watch that lasts longer is not
	// one of those in a row.
	maxReopenDelay = 5 * time.Second
)

// newReopenBackoff returns the times between the attempts, which maxReopenDelay bounds.
func newReopenBackoff() wait.Backoff {
	return wait.Backoff{Duration: 100 * time.Millisecond, Factor: 2, Jitter: 0.5, Steps: maxReopens}
}

// ownWatcher gives each watch of a client of the server a watcher of its own. It opens another
// one if etcd ends the watch because the member has no leader, as during an election:
// otherwise, the client of the server would get an error.
type ownWatcher struct {
	clientv3.Watcher // of watch caches, which open their watches again themselves
	open             func() clientv3.Watcher
}

// Watch watches keys.
func (w ownWatcher) Watch(ctx context.Context, key string, opts ...clientv3.OpOption) clientv3.WatchChan {
	if flowOf(ctx) == nil {
		return w.Watcher.Watch(ctx, key, opts...)
	}
	to := make(chan clientv3.WatchResponse)
	go func() {
		defer close(to)
		next, backoff := clientv3.OpGet(key, opts...).Rev(), newReopenBackoff()
		for {
			opened := time.Now()
			lost := w.pass(ctx, to, &next, key, opts...)
			if ctx.Err() != nil || lost == nil {
				return
			}
			if time.Since(opened) > maxReopenDelay {
				backoff = newReopenBackoff()
			}
			if backoff.Steps == 0 || next == 0 {
				select {
				case to <- *lost:
				case <-ctx.Done():
				}
				return
			}
			klog.FromContext(ctx).V(2).Info("Opening a watch again, because a member of etcd has no leader", "key", key, "revision", next)
			select {
			case <-time.After(min(backoff.Step(), maxReopenDelay)):
			case <-ctx.Done():
				return
			}
		}
	}()
	return to
}

// pass opens a watch from the revision next, and passes its responses on. It returns the
// response with which etcd has ended the watch because the member has no leader, or nil if it
// has ended for another reason.
func (w ownWatcher) pass(ctx context.Context, to chan<- clientv3.WatchResponse, next *int64, key string, opts ...clientv3.OpOption) (lost *clientv3.WatchResponse) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	watcher := openUntilDone(ctx, w.open)
	if *next > 0 {
		opts = append(slices.Clip(opts), clientv3.WithRev(*next))
	}
	for response := range watcher.Watch(ctx, key, opts...) {
		if errors.Is(response.Err(), rpctypes.ErrNoLeader) {
			return &response
		}
		select {
		case to <- response:
		case <-ctx.Done():
			return nil
		}
		*next = max(*next, sentUntil(&response)+1)
	}
	return nil
}

// sentUntil returns the revision up to which etcd has sent all events with a response, or 0.
// It sends those of a revision in one response.
func sentUntil(response *clientv3.WatchResponse) int64 {
	switch {
	case len(response.Events) > 0:
		return response.Events[len(response.Events)-1].Kv.ModRevision
	case response.IsProgressNotify():
		return response.Header.Revision
	}
	return 0
}
