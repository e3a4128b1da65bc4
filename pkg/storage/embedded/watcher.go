// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package embedded

import (
	"sync"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/etcdserver"
	"go.etcd.io/etcd/server/v3/etcdserver/api/v3rpc"
	"go.etcd.io/etcd/server/v3/proxy/grpcproxy/adapter"
)

// watcher is the watcher of a client. Close also closes those that it has opened, because a watch
// that reads while the member is closed can get a closed database.
type watcher struct {
	clientv3.Watcher
	open func() clientv3.Watcher

	mu     sync.Mutex
	closed bool
	opened map[*openedWatcher]struct{}
}

func newWatcher(client *clientv3.Client, server *etcdserver.EtcdServer) *watcher {
	return &watcher{
		Watcher: client.Watcher,
		open: func() clientv3.Watcher {
			return clientv3.NewWatchFromWatchClient(adapter.WatchServerToWatchClient(v3rpc.NewWatchServer(server)), client)
		},
		opened: map[*openedWatcher]struct{}{},
	}
}

// Open returns another watcher of the client. The caller closes it.
func (w *watcher) Open() clientv3.Watcher {
	o := &openedWatcher{Watcher: w.open(), by: w}
	w.mu.Lock()
	closed := w.closed
	if !closed {
		w.opened[o] = struct{}{}
	}
	w.mu.Unlock()
	if closed {
		_ = o.Close() // its watches end at once
	}
	return o
}

// Close closes the watcher and those that it has opened.
func (w *watcher) Close() error {
	w.mu.Lock()
	w.closed = true
	var opened []*openedWatcher
	for o := range w.opened {
		opened = append(opened, o)
	}
	w.mu.Unlock()
	for _, o := range opened {
		_ = o.Close() // the error is that of its stream
	}
	return w.Watcher.Close()
}

// openedWatcher is a watcher that another one has opened.
type openedWatcher struct {
	clientv3.Watcher
	by   *watcher
	once sync.Once
}

// Close closes the watcher. All calls return when it is closed.
func (o *openedWatcher) Close() (err error) {
	o.once.Do(func() {
		err = o.Watcher.Close()
		o.by.mu.Lock()
		defer o.by.mu.Unlock()
		delete(o.by.opened, o)
	})
	return err
}
