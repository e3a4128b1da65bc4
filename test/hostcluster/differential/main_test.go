// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

// Package differential sends the same requests to kube-apiserver and to Borough
// and compares what comes back: the status code, the reason, the message and the
// causes, the warnings, and the object as it is stored. Only the group's name
// may differ, and what the list of known differences names.
package differential

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"testing"

	"github.com/borough-io/borough/test/e2e/harness"
	"github.com/borough-io/borough/test/hostcluster/differential/sites"
)

var (
	// cases is how many are generated; `make differential` has more.
	cases = flag.Int("cases", 40, "how many scenarios are generated in each area")
	// seed repeats a run.
	seed = flag.Uint64("seed", rand.Uint64(), "what the random choices begin with")
	// keep is for a run that looks for differences.
	keep = flag.String("keep", "", "the file that scenarios are added to that show a difference")
)

// both run the scenarios of all tests.
var both *runner

func TestMain(m *testing.M) { harness.Main(m, run) }

func run(m *testing.M) (code int, err error) {
	pair, err := sites.Start(context.Background())
	if err != nil {
		return 0, err
	}
	defer func() {
		if err != nil {
			fmt.Fprintln(os.Stderr, pair.Logs())
		}
		err = errors.Join(err, pair.Stop())
	}()
	if both, err = newRunner(pair); err != nil {
		return 0, err
	}
	code = m.Run()
	summarize()
	return code, nil
}
