// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package rbac

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// revision is how far the index has read one resource.
type revision struct {
	// value is the resourceVersion that was reached, or 0 before the first list.
	value uint64
	// reached is closed when value grows.
	reached chan struct{}
}

// advance records that a resource was read up to a revision. The lock is held.
func (x *Index) advance(r resource, value uint64) {
	if rev := &x.revisions[r]; value > rev.value {
		rev.value = value
		close(rev.reached)
		rev.reached = make(chan struct{})
	}
}

// await waits until the index has read a resource up to a revision.
func (x *Index) await(ctx context.Context, r resource, value uint64) error {
	for {
		x.mu.RLock()
		current := x.revisions[r]
		x.mu.RUnlock()
		if current.value >= value {
			return nil
		}
		select {
		case <-current.reached:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// Synced returns nil if the index has read the whole policy once, and otherwise what
// it is waiting for.
func (x *Index) Synced() error {
	x.mu.RLock()
	defer x.mu.RUnlock()
	for r := range resources {
		if x.revisions[r].value == 0 {
			return fmt.Errorf("the %s have not been read yet", r.groupResource())
		}
	}
	return nil
}

// AwaitSync waits until the index has read the whole policy once.
func (x *Index) AwaitSync(ctx context.Context) error {
	for r := range resources {
		if err := x.await(ctx, r, 1); err != nil {
			return errors.Join(x.Synced(), err)
		}
	}
	return nil
}

// AwaitWrite waits until decisions follow what was written to a resource at a
// revision of storage. For other resources than those of the policy it returns at
// once.
func (x *Index) AwaitWrite(ctx context.Context, gr schema.GroupResource, revision int64) error {
	for r := range resources {
		if r.groupResource() == gr {
			return x.await(ctx, r, uint64(revision))
		}
	}
	return nil
}
