// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package changes_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/borough-io/borough/pkg/storage/changes"
	"github.com/borough-io/borough/pkg/storage/stored"
)

const (
	// lagInterval is how long a watch may make no progress.
	lagInterval = time.Second
	// unawaitedLagInterval is how often that is checked if no caller waits.
	unawaitedLagInterval = 5 * time.Second
)

// closingEtcd has no objects. The test closes its watches.
type closingEtcd struct {
	clientv3.KV
	clientv3.Watcher
	watches chan chan clientv3.WatchResponse
	// waiting and most are how many requests for progress wait to be sent.
	waiting, most *atomic.Int32
	// revision is that of all writes.
	revision *atomic.Int64
	// hanging is how many of the next reads are not answered.
	hanging *atomic.Int64
}

func newClosingEtcd() closingEtcd {
	e := closingEtcd{watches: make(chan chan clientv3.WatchResponse), waiting: &atomic.Int32{}, most: &atomic.Int32{}, revision: &atomic.Int64{}, hanging: &atomic.Int64{}}
	e.revision.Store(1)
	return e
}

// feed returns a feed from it.
func (e closingEtcd) feed(ctx context.Context) *changes.Feed {
	feed := changes.NewFeed(recorder{make(chan string, 1)})
	feed.SetSource(changes.Source{
		Connect: func() (*clientv3.Client, func(), error) {
			client := clientv3.NewCtxClient(ctx)
			client.KV, client.Watcher = e, e
			return client, func() {}, nil
		},
		Resources: []stored.Resource{{Prefix: "/a/"}},
	})
	return feed
}

func (e closingEtcd) Get(ctx context.Context, _ string, _ ...clientv3.OpOption) (*clientv3.GetResponse, error) {
	if e.hanging.Add(-1) >= 0 {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return &clientv3.GetResponse{Header: &etcdserverpb.ResponseHeader{Revision: e.revision.Load()}}, nil
}

// Open implements etcdwatch.Opener.
func (e closingEtcd) Open() clientv3.Watcher { return e }

// Close closes nothing.
func (e closingEtcd) Close() error { return nil }

func (e closingEtcd) Watch(context.Context, string, ...clientv3.OpOption) clientv3.WatchChan {
	responses := make(chan clientv3.WatchResponse)
	e.watches <- responses
	return responses
}

// RequestProgress waits, as while there is no stream.
func (e closingEtcd) RequestProgress(ctx context.Context) error {
	e.most.Store(max(e.most.Load(), e.waiting.Add(1)))
	defer e.waiting.Add(-1)
	<-ctx.Done()
	return ctx.Err()
}

// TestInterruptions interrupts a feed many times in a row, and once more an hour later. Then
// the feed must not wait as long as after many.
func TestInterruptions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		etcd, ended := newClosingEtcd(), make(chan error)
		go func() { ended <- etcd.feed(ctx).Run(ctx) }()
		// interrupt returns the time until there is another watch.
		interrupt := func(watch chan clientv3.WatchResponse) (chan clientv3.WatchResponse, time.Duration) {
			began := time.Now()
			close(watch)
			return <-etcd.watches, time.Since(began)
		}
		watch, delay := <-etcd.watches, time.Duration(0)
		for range 20 {
			watch, delay = interrupt(watch)
		}
		if delay < time.Second {
			t.Errorf("after 20 interruptions in a row, the feed waited only for %s", delay)
		}
		time.Sleep(time.Hour)
		if etcd.most.Load() == 0 {
			t.Error("in an hour without a change, the feed has not asked for progress: etcd may have compacted what follows")
		}
		if watch, delay = interrupt(watch); delay > time.Second {
			t.Errorf("after an hour without an interruption, the feed waited for %s", delay)
		}
		cancel()
		close(watch) // as etcd's client does
		<-ended
	})
}

// TestLag waits for a revision of etcd that the watch does not send, although it has not
// ended. There must be another watch, also if no caller waits, but not if etcd does not have the
// revision, or the watch makes progress.
func TestLag(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		etcd, ended := newClosingEtcd(), make(chan error)
		feed := etcd.feed(ctx)
		go func() { ended <- feed.Run(ctx) }()
		watch := <-etcd.watches
		await := func(revision int64) chan error {
			reached := make(chan error, 1)
			go func() { reached <- feed.Await(ctx, revision) }()
			return reached
		}
		// another reports whether there is another watch within the time.
		another := func(within time.Duration) bool {
			select {
			case watch = <-etcd.watches:
				return true
			case <-time.After(within):
				return false
			}
		}
		progress := func(revision int64) {
			watch <- clientv3.WatchResponse{Header: &etcdserverpb.ResponseHeader{Revision: revision}}
		}
		reached := await(9)
		if another(time.Minute) {
			t.Error("another watch for a revision that etcd does not have")
		}
		etcd.revision.Store(9)
		for revision := range int64(8) {
			progress(revision + 2)
			if another(2 * lagInterval / 3) {
				t.Errorf("another watch after one that has reached revision %d", revision+2)
			}
		}
		if err := <-reached; err != nil {
			t.Error(err)
		}
		if another(time.Minute) {
			t.Error("another watch although it has reached the revision of etcd")
		}
		etcd.revision.Store(10)
		if !another(unawaitedLagInterval + 3*lagInterval) {
			t.Error("no other watch although no caller waits")
		}
		progress(10)
		etcd.revision.Store(11)
		etcd.hanging.Store(1) // the question to the member that lags
		reached = await(11)
		if another(5 * lagInterval) {
			progress(11)
		} else {
			t.Error("no other watch")
		}
		cancel()
		close(watch)
		<-reached
		<-ended
	})
}

// TestProgressWithoutStream waits for a revision, and then for an hour, while no request for
// progress can be sent.
func TestProgressWithoutStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		etcd, ended := newClosingEtcd(), make(chan error)
		feed := etcd.feed(ctx)
		go func() { ended <- feed.Run(ctx) }()
		watch := <-etcd.watches
		waiting, stop := context.WithTimeout(ctx, 3*time.Second)
		defer stop()
		if err := feed.Await(waiting, 2); err == nil {
			t.Error("the feed has reached a revision of which it was not sent anything")
		}
		time.Sleep(time.Hour)
		if most := etcd.most.Load(); most != 1 {
			t.Errorf("%d requests for progress waited at once, want 1", most)
		}
		cancel()
		close(watch)
		<-ended
	})
}
