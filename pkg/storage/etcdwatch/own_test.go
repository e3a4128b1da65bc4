// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package etcdwatch

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/borough-io/borough/test/harness/etcdcluster"
	"github.com/borough-io/borough/test/poll"
)

// answering is a watcher that sends the responses of a test after some time, and then ends.
type answering struct {
	clientv3.Watcher
	t         *testing.T
	from      int64
	lasts     time.Duration
	responses []clientv3.WatchResponse
	closed    chan struct{}
}

// Watch returns the responses.
func (w *answering) Watch(_ context.Context, key string, opts ...clientv3.OpOption) clientv3.WatchChan {
	if got := clientv3.OpGet(key, opts...).Rev(); got != w.from {
		w.t.Errorf("a watch begins at revision %d, want %d", got, w.from)
	}
	time.Sleep(w.lasts)
	responses := make(chan clientv3.WatchResponse, len(w.responses))
	for _, response := range w.responses {
		responses <- response
	}
	close(responses)
	return responses
}

// Close closes the watcher.
func (w *answering) Close() error {
	close(w.closed)
	return nil
}

// TestNoLeader opens a watch again from the revision after what it got, but only for a time. Each
// watcher is closed.
func TestNoLeader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		noLeader := clientv3.WatchResponse{Canceled: true, CancelReason: rpctypes.ErrNoLeader.Error()}
		progress := func(revision int64) clientv3.WatchResponse {
			return clientv3.WatchResponse{Header: &etcdserverpb.ResponseHeader{Revision: revision}}
		}
		watchers := []*answering{
			{from: 5, responses: []clientv3.WatchResponse{responseOf(1, 5, 6), noLeader}},
			{from: 7, lasts: time.Minute, responses: []clientv3.WatchResponse{responseOf(1, 7), progress(9), noLeader}},
		}
		for range maxReopens {
			watchers = append(watchers, &answering{from: 10, responses: []clientv3.WatchResponse{noLeader}})
		}
		for _, watcher := range watchers {
			watcher.t, watcher.closed = t, make(chan struct{})
		}
		began, opened := time.Now(), 0
		watch := ownWatcher{open: func() clientv3.Watcher { opened++; return watchers[opened-1] }}.
			Watch(WithFlow(t.Context(), NewFlow(nil)), "key", clientv3.WithRev(5))
		var got []int64
		var err error
		for response := range watch {
			if err != nil {
				t.Errorf("got %v after an error", response)
			}
			err = response.Err()
			for _, event := range response.Events {
				got = append(got, event.Kv.ModRevision)
			}
			if response.IsProgressNotify() {
				got = append(got, -response.Header.Revision)
			}
		}
		if want := []int64{5, 6, 7, -9}; !slices.Equal(got, want) || !errors.Is(err, rpctypes.ErrNoLeader) || opened != len(watchers) {
			t.Errorf("got %v and %v of %d watches, want %v and %v", got, err, opened, want, rpctypes.ErrNoLeader)
		}
		if took := time.Since(began) - time.Minute; took < 20*time.Second || took > 33*time.Second {
			t.Errorf("the watch was opened again for %s", took)
		}
		for _, watcher := range watchers {
			<-watcher.closed
		}
	})
}

// TestMemberWithoutLeader watches while the only member that the client knows has lost the
// others. The watch gets the next event when it has found them. A watch of a watch cache ends.
func TestMemberWithoutLeader(t *testing.T) {
	t.Parallel() // it waits for elections
	etcd := etcdcluster.Start(t)
	alone, others := etcd.Members[0], etcd.Members[1:]
	client, writer := etcdcluster.NewClient(t, alone), etcdcluster.NewClient(t, others...)
	from := clientv3.WithRev(etcdcluster.Put(t, writer, "key", "1"))

	ctx := clientv3.WithRequireLeader(t.Context())
	opener := New(client, false)
	watch := opener.Watch(WithFlow(ctx, NewFlow(nil)), "key", from)
	next := func() string {
		t.Helper()
		response, ok := <-watch
		if !ok || response.Err() != nil || len(response.Events) != 1 {
			t.Fatalf("got %v, %v, open: %t", response.Events, response.Err(), ok)
		}
		return string(response.Events[0].Kv.Value)
	}
	if got := next(); got != "1" {
		t.Fatalf("got %q, want 1", got)
	}
	var ofCache clientv3.WatchChan
	poll.Eventually(t, func() string { // it ends if the member has no leader for a moment
		ofCache = opener.Watch(ctx, "key", from)
		if response, ok := <-ofCache; !ok || response.Err() != nil {
			return fmt.Sprintf("a watch of a watch cache got %v", response.Err())
		}
		return ""
	})
	etcd.Isolate(alone)
	if response := <-ofCache; !errors.Is(response.Err(), rpctypes.ErrNoLeader) {
		t.Fatalf("a watch of a watch cache got %v, want %v", response.Err(), rpctypes.ErrNoLeader)
	}
	etcdcluster.Put(t, writer, "key", "2")
	etcd.Join()
	if got := next(); got != "2" {
		t.Fatalf("got %q, want 2", got)
	}
}
