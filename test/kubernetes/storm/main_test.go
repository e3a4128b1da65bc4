// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

// Package storm writes content in every possible way, from many clients through
// two servers that share an etcd of three members, while its Namespaces are
// deleted, created again and relabelled, and while the servers' caches are
// stale. The result is read from etcd: all existing objects and the whole
// history. At the same time it grants and revokes rights, and checks the decisions
// of both servers.
package storm

import (
	"flag"
	"math/rand/v2"
	"testing"

	"github.com/borough-io/borough/test/kubernetes/testcluster"
)

var (
	// rounds is the number of rounds of each test; `make storm` runs more.
	rounds = flag.Int("rounds", 4, "number of times that each Namespace is deleted and created again, in the calm and then among faults")
	// seed repeats the random choices of a run, but not how its clients
	// interleave.
	seed = flag.Uint64("seed", rand.Uint64(), "the seed of the random choices")
)

func TestMain(m *testing.M) { testcluster.Main(m) }
