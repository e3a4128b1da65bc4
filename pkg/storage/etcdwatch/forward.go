// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package etcdwatch

import (
	"context"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// forward returns a watch with the responses of another one, until the context ends. change may
// change a response, and reports whether to pass it on.
func forward(ctx context.Context, from clientv3.WatchChan, change func(*clientv3.WatchResponse) bool) clientv3.WatchChan {
	to := make(chan clientv3.WatchResponse)
	go func() {
		defer close(to)
		for response := range from {
			if !change(&response) {
				continue
			}
			select {
			case to <- response:
			case <-ctx.Done():
				return
			}
		}
	}()
	return to
}
