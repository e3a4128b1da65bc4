// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"testing"
)

// Main is for the TestMain of a package without short tests. It calls run, which
// must set up what the tests share, call m.Run and return its code. Then Main
// removes the binaries that the harness has built, and exits.
//
// At least four parallel tests run at once, because they mostly wait for
// processes.
func Main(m *testing.M, run func(*testing.M) (code int, err error)) {
	if err := flag.Set("test.parallel", strconv.Itoa(max(4, runtime.GOMAXPROCS(0)))); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
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
