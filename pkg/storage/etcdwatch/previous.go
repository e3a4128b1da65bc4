// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package etcdwatch

import (
	"context"
	"errors"
	"fmt"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"k8s.io/klog/v2"
)

// previousWatcher adds the previous values that etcd leaves out of events, without which the
// library ends a watch with the code 500. Etcd can send the first events of a watch before it
// records that the watch wants previous values. And it leaves out what is compacted.
type previousWatcher struct {
	clientv3.Watcher
	kv clientv3.KV
}

// Watch watches keys. A watch whose previous values are compacted ends as one from a compacted
// revision does.
func (w previousWatcher) Watch(ctx context.Context, key string, opts ...clientv3.OpOption) clientv3.WatchChan {
	inner := w.Watcher.Watch(ctx, key, opts...)
	if !clientv3.OpGet(key, opts...).IsPrevKV() {
		return inner
	}
	return forward(ctx, inner, func(response *clientv3.WatchResponse) bool {
		err := w.addPrevious(ctx, response.Events)
		switch {
		case errors.Is(err, rpctypes.ErrCompacted):
			*response = clientv3.WatchResponse{Header: response.Header, Canceled: true, CompactRevision: response.Header.Revision}
		case err != nil && ctx.Err() == nil: // the library ends the watch
			klog.FromContext(ctx).Error(err, "Unable to add previous values to the events of a watch", "key", key)
		}
		return true
	})
}

// addPrevious adds previous values to the events that need one and have none.
func (w previousWatcher) addPrevious(ctx context.Context, events []*clientv3.Event) error {
	for _, event := range events {
		if event.IsCreate() || event.PrevKv != nil {
			continue
		}
		key, revision := string(event.Kv.Key), event.Kv.ModRevision-1
		response, err := w.kv.Get(ctx, key, clientv3.WithRev(revision))
		if err != nil {
			return fmt.Errorf("read %s at revision %d: %w", key, revision, err)
		}
		if len(response.Kvs) > 0 {
			event.PrevKv = response.Kvs[0]
		}
	}
	return nil
}
