// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

// Package ha tests that Borough stays up: two servers and two controllers on an
// etcd of three members with TLS, behind the aggregator of a real Kubernetes
// cluster, of which one after the other is restarted, killed, or stands still,
// while clients write, read and watch.
package ha

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"testing"

	"github.com/borough-io/borough/test/e2e/harness"
	"github.com/borough-io/borough/test/hostcluster"
)

func TestMain(m *testing.M) {
	flag.Parse()
	if testing.Short() {
		fmt.Println("The tests on a host cluster are no short ones.")
		return
	}
	// They wait more than they work, also where there are few processors.
	if err := flag.Set("test.parallel", "4"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	code, err := run(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

func run(m *testing.M) (code int, err error) {
	defer func() { err = errors.Join(err, harness.Cleanup()) }()
	// Whatever has to be built is built before anything waits for a process.
	if _, err := harness.Binary("borough-apiserver"); err != nil {
		return 0, err
	}
	if _, err := hostcluster.Binary("etcd"); err != nil {
		return 0, err
	}
	return m.Run(), nil
}
