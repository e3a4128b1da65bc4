// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

// Package storm creates content by every path there is, from many clients
// through two servers on one etcd of three members, in Namespaces that are being
// deleted, created again and relabelled meanwhile, while the servers' caches are
// stale. What came of it is read from etcd itself: all that there is, and all
// that ever was.
package storm

import (
	"context"
	"flag"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/borough-io/borough/test/hostcluster"
)

var (
	// rounds is how many there are of each kind; `make storm` has more.
	rounds = flag.Int("rounds", 4, "how often each Namespace lives and dies, in the calm and then among faults")
	// seed repeats the choices of a run, though not how its clients interleave.
	seed = flag.Uint64("seed", rand.Uint64(), "what the random choices begin with")
)

func TestMain(m *testing.M) { hostcluster.Main(m) }

// pause returns after a time, or with an error when the context ends before.
func pause(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return nil
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-timer.C:
		return nil
	}
}
