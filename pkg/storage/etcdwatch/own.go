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

// noLeaderBackoff has the times between two attempts to open a watch while a member of etcd
// has no leader: 20 to 30 seconds altogether, as long as a watch cache tries.
var noLeaderBackoff = wait.Backoff{Duration: 100 * time.Millisecond, Factor: 2, Jitter: 0.5, Steps: 9, Cap: 5 * time.Second}

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
		next, backoff := clientv3.OpGet(key, opts...).Rev(), noLeaderBackoff
		for {
			opened := time.Now()
			if !w.pass(ctx, to, &next, backoff.Steps > 0, key, opts...) {
				return
			}
			if time.Since(opened) > noLeaderBackoff.Cap {
				backoff = noLeaderBackoff
			}
			klog.FromContext(ctx).V(2).Info("Opening a watch again, because a member of etcd has no leader", "key", key, "revision", next)
			select {
			case <-time.After(backoff.Step()):
			case <-ctx.Done():
				return
			}
		}
	}()
	return to
}

// pass opens a watch from the revision next, and passes its responses on. It reports whether the
// watch has ended because the member has no leader, unless that has to be passed on, too.
func (w ownWatcher) pass(ctx context.Context, to chan<- clientv3.WatchResponse, next *int64, again bool, key string, opts ...clientv3.OpOption) bool {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	watcher := openUntilDone(ctx, w.open)
	if *next > 0 {
		opts = append(slices.Clip(opts), clientv3.WithRev(*next))
	}
	for response := range watcher.Watch(ctx, key, opts...) {
		if again && *next > 0 && errors.Is(response.Err(), rpctypes.ErrNoLeader) {
			return true
		}
		select {
		case to <- response:
		case <-ctx.Done():
			return false
		}
		*next = max(*next, sentUntil(&response)+1)
	}
	return false
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
