// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package etcdwatch

import (
	"context"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// Opener is a watcher that opens others for the same member of etcd. Those of clients that are
// connected by gRPC need not be one.
type Opener interface {
	clientv3.Watcher
	// Open returns a watcher, which the caller closes.
	Open() clientv3.Watcher
}

// Open returns a watcher with streams of its own, which is closed when the context ends. The
// watches of a client share a stream, with three consequences. Etcd sends progress to all of
// them, and may send what was requested for another watch before the events of one that has
// just begun. A stream between a client and a member in one process blocks, until the process
// ends, when many watches end at once while there are events: the client and the member each
// wait for the other to receive. And a stream whose only watch ends before etcd has confirmed
// it stays open, until the client is closed or has another watch for it.
func Open(ctx context.Context, client *clientv3.Client) clientv3.Watcher {
	return openUntilDone(ctx, opener(client))
}

func openUntilDone(ctx context.Context, open func() clientv3.Watcher) clientv3.Watcher {
	watcher := open()
	context.AfterFunc(ctx, func() { _ = watcher.Close() }) // the error is that of its stream
	return watcher
}

func opener(client *clientv3.Client) func() clientv3.Watcher {
	if opener, ok := client.Watcher.(Opener); ok {
		return opener.Open
	}
	return func() clientv3.Watcher { return clientv3.NewWatcher(client) }
}
