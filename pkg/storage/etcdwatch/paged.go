// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package etcdwatch

import (
	"context"
	"slices"

	clientv3 "go.etcd.io/etcd/client/v3"
)

const (
	firstPage = 10
	maxPage   = 10_000 // the library's
)

// pagedKV reads the objects with which a watch begins in pages of about maxSent bytes. The library
// reads 10,000 objects at once, and keeps them until the client has read them. With a stream
// (RangeStream), etcd sends small parts itself.
type pagedKV struct{ clientv3.KV }

// NewKV returns what a store reads from etcd with, in place of that of its client.
func NewKV(kv clientv3.KV) clientv3.KV { return pagedKV{kv} }

// Get reads keys.
func (kv pagedKV) Get(ctx context.Context, key string, opts ...clientv3.OpOption) (*clientv3.GetResponse, error) {
	flow := flowOf(ctx)
	if flow == nil || clientv3.OpGet(key, opts...).RangeBytes() == nil {
		return kv.KV.Get(ctx, key, opts...)
	}
	response, err := kv.KV.Get(ctx, key, append(slices.Clip(opts), clientv3.WithLimit(flow.page))...)
	if err == nil {
		flow.page = nextPage(flow.page, response)
	}
	return response, err
}

// nextPage returns how many objects to read after those of a response.
func nextPage(page int64, response *clientv3.GetResponse) int64 {
	size := 0
	for _, kv := range response.Kvs {
		size += eventSize + len(kv.Value)
	}
	switch {
	case size < maxSent/2:
		page *= 2
	case size > maxSent:
		page /= 2
	}
	return min(max(page, 1), maxPage)
}
