// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

// Package ha tests that Borough stays up: two servers and two controllers on an
// etcd of three members with TLS, behind the aggregator of a real Kubernetes
// cluster, of which one after the other is restarted, killed, or stands still,
// while clients write, read and watch.
package ha

import (
	"flag"
	"fmt"
	"os"
	"testing"

	"github.com/borough-io/borough/test/hostcluster"
)

func TestMain(m *testing.M) {
	// They wait more than they work, also where there are few processors.
	if err := flag.Set("test.parallel", "4"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	hostcluster.Main(m)
}
