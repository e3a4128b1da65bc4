// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

// Package certificates tests, in a real Kubernetes cluster, how servers come by
// the certificates that they serve with, and that nobody notices when they get
// others.
package certificates

import (
	"flag"
	"fmt"
	"os"
	"testing"

	"github.com/borough-io/borough/test/e2e/harness"
)

func TestMain(m *testing.M) {
	flag.Parse()
	if testing.Short() {
		fmt.Println("The tests on a host cluster are no short ones.")
		return
	}
	code := m.Run()
	if err := harness.Cleanup(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}
