// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package boroughtest_test

import (
	"fmt"
	"os"
	"testing"

	"github.com/borough-io/borough/boroughtest"
	"github.com/borough-io/borough/test/leaktest"
)

// withoutMain is an environment variable. If it is set, TestMain does not call Main.
const withoutMain = "BOROUGHTEST_WITHOUT_MAIN"

func TestMain(m *testing.M) {
	if os.Getenv(withoutMain) != "" {
		os.Exit(m.Run())
	}
	code := boroughtest.Main(m)
	if code == 0 {
		if err := leaktest.Check(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	os.Exit(code)
}
