// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package compaction

import "sync/atomic"

// Meter counts the bytes that a server writes to an etcd cluster.
type Meter struct {
	left  atomic.Int64 // until the next check
	check chan struct{}
}

// NewMeter returns a meter for the writes of all clients of an etcd cluster.
func NewMeter() *Meter {
	m := &Meter{check: make(chan struct{}, 1)}
	m.left.Store(unknownStep)
	return m
}

// Add counts bytes that were written.
func (m *Meter) Add(bytes int) {
	if m.left.Add(-int64(bytes)) >= 0 {
		return
	}
	select {
	case m.check <- struct{}{}:
	default:
	}
}
