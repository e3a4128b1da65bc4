// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

// Package visibility checks what users see of the Namespaces while rights and
// Namespaces change, on two servers that share an etcd of three members, with faults.
//
// Informers of some thirty users run all the time, and are cut off and resume at
// another server. Everything that a client gets is recorded and compared with what the
// user could see, which the test computes for every revision from the history in etcd,
// with an implementation of RBAC of its own (see policy).
package visibility

import (
	"flag"
	"math/rand/v2"
	"testing"

	"github.com/borough-io/borough/test/kubernetes/replicas"
	"github.com/borough-io/borough/test/kubernetes/testcluster"
)

var (
	// rounds is the number of rounds; `make visibility` runs more.
	rounds = flag.Int("rounds", 2*len(replicas.Faults), "number of rounds of writes, after each of which is compared what users see; every other one has a fault")
	// seed repeats the random choices of a run, but not how its clients interleave.
	seed = flag.Uint64("seed", rand.Uint64(), "the seed of the random choices")
)

func TestMain(m *testing.M) { testcluster.Main(m) }
