// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package changes_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/borough-io/borough/pkg/storage/changes"
	"github.com/borough-io/borough/pkg/storage/stored"
)

// closingEtcd has no objects. The test closes its watches.
type closingEtcd struct {
	clientv3.KV
	clientv3.Watcher
	watches chan chan clientv3.WatchResponse
}

func (closingEtcd) Get(context.Context, string, ...clientv3.OpOption) (*clientv3.GetResponse, error) {
	return &clientv3.GetResponse{Header: &etcdserverpb.ResponseHeader{Revision: 1}}, nil
}

func (e closingEtcd) Watch(context.Context, string, ...clientv3.OpOption) clientv3.WatchChan {
	responses := make(chan clientv3.WatchResponse)
	e.watches <- responses
	return responses
}

func (closingEtcd) RequestProgress(context.Context) error { return nil }

// TestInterruptions interrupts a feed many times in a row, and once more an hour later. Then
// the feed must not wait as long as after many.
func TestInterruptions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		etcd := closingEtcd{watches: make(chan chan clientv3.WatchResponse)}
		feed := changes.NewFeed(recorder{make(chan string, 1)})
		feed.SetSource(changes.Source{
			Connect: func() (*clientv3.Client, func(), error) {
				client := clientv3.NewCtxClient(ctx)
				client.KV, client.Watcher = etcd, etcd
				return client, func() {}, nil
			},
			Resources: []stored.Resource{{Prefix: "/a/"}},
		})
		ended := make(chan error)
		go func() { ended <- feed.Run(ctx) }()
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
		if watch, delay = interrupt(watch); delay > time.Second {
			t.Errorf("after an hour without an interruption, the feed waited for %s", delay)
		}
		cancel()
		close(watch) // as etcd's client does
		<-ended
	})
}
