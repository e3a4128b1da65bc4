// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"testing"
)

// Main is for the TestMain of a package whose tests are no short ones. It calls
// run, which sets up what the tests share, calls m.Run and returns its code, and
// removes what the harness has built. It does not return.
func Main(m *testing.M, run func(*testing.M) (code int, err error)) {
	flag.Parse()
	if testing.Short() {
		fmt.Println("These tests are no short ones.")
		os.Exit(0)
	}
	code, err := run(m)
	if err := errors.Join(err, Cleanup()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}
