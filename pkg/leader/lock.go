// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package leader

import (
	"context"
	"fmt"
	"time"

	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// lock is a Lease that ends the work before another process can hold it.
type lock struct {
	resourcelock.Interface
	renewDeadline time.Duration
	// stop ends the context of the work.
	stop func()
	// returned is closed when the work has returned, or will not be called.
	returned <-chan struct{}
	// deadline calls stop. It is nil before the process holds the Lease.
	deadline *time.Timer
	// holder is the holder that the last Get returned.
	holder string
}

// Get reads the Lease.
func (l *lock) Get(ctx context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	record, raw, err := l.Interface.Get(ctx)
	if err == nil {
		l.holder = record.HolderIdentity
	}
	return record, raw, err
}

// Create acquires the Lease.
func (l *lock) Create(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	return l.hold(func() error { return l.Interface.Create(ctx, record) })
}

// Update acquires or renews the Lease, or releases it if the record has no holder.
func (l *lock) Update(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	if record.HolderIdentity != "" {
		return l.hold(func() error { return l.Interface.Update(ctx, record) })
	}
	l.stop()
	// The elector gets the Lease before it releases it, but does not look at the holder. The
	// update carries the resourceVersion of that Lease.
	if l.holder != l.Identity() {
		return fmt.Errorf("release the lease: it is held by %q", l.holder)
	}
	select {
	case <-l.returned:
		return l.Interface.Update(ctx, record)
	case <-ctx.Done():
		return fmt.Errorf("wait for the work to return: %w", ctx.Err())
	}
}

// hold sends a request that acquires or renews the Lease, and moves the deadline if it
// succeeds. The server may write the Lease as soon as the request is sent.
func (l *lock) hold(send func() error) error {
	sent := time.Now()
	if err := send(); err != nil {
		return err
	}
	if l.deadline != nil {
		l.deadline.Stop()
	}
	l.deadline = time.AfterFunc(time.Until(sent.Add(l.renewDeadline)), l.stop)
	return nil
}
