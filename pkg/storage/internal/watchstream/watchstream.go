// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

// Package watchstream separates the watches of an etcd client.
package watchstream

import (
	"context"
	"strconv"
	"sync/atomic"

	"google.golang.org/grpc/metadata"
)

var streams atomic.Uint64

// Own returns a context that selects a stream of etcd for one watch. By default, watches share
// a stream, with two consequences. Etcd sends progress to all of them, and may send what was
// requested for another watch before the events of one that has just begun. And a stream
// between a client and a member in one process blocks, until the process ends, when many
// watches end at once while there are events: the client and the member each wait for the other
// to receive. A stream of one watch ends with it, and nothing is sent.
func Own(ctx context.Context) context.Context {
	return metadata.AppendToOutgoingContext(ctx, "watch", strconv.FormatUint(streams.Add(1), 10))
}
