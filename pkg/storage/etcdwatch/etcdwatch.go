// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

// Package etcdwatch adapts the watches of an etcd client to the stores of the API server
// library, which open one for each watch that is not served from a watch cache.
package etcdwatch

import clientv3 "go.etcd.io/etcd/client/v3"

// watcher is the watcher of a store.
type watcher struct {
	clientv3.Watcher
	open func() clientv3.Watcher
}

// Open implements Opener.
func (w watcher) Open() clientv3.Watcher { return w.open() }

// New returns the watcher for the store of a resource, in place of that of its client.
// severalWritten is whether one transaction can write several objects of the resource.
func New(client *clientv3.Client, severalWritten bool) Opener {
	open := opener(client)
	var w clientv3.Watcher = boundedWatcher{previousWatcher{ownWatcher{client.Watcher, open}, client.KV}}
	if severalWritten {
		w = atomicWatcher{w}
	}
	return watcher{w, open}
}
