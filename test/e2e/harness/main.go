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

// Main is for the TestMain of a package without short tests. It calls run, which
// must set up what the tests share, call m.Run and return its code. Then Main
// removes the binaries that the harness has built, and exits.
func Main(m *testing.M, run func(*testing.M) (code int, err error)) {
	flag.Parse()
	if testing.Short() {
		fmt.Println("Skipped: these tests are not short.")
		os.Exit(0)
	}
	code, err := run(m)
	if err := errors.Join(err, Cleanup()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}
