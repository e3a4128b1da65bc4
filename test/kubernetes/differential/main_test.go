// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

// Package differential sends the same requests to kube-apiserver and to Borough
// and compares the responses: status code, reason, message, causes, warnings,
// and the object as it is stored. Only the known differences may differ.
//
// All requests are for the core group. Some of them are then sent to Borough's own
// group, too, where the name of the group may differ as well.
package differential

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"testing"

	"github.com/borough-io/borough/test/harness"
	"github.com/borough-io/borough/test/kubernetes/differential/sides"
)

var (
	// cases is the number of generated scenarios; `make differential` generates
	// more.
	cases = flag.Int("cases", 40, "number of generated scenarios in each area")
	// seed is always the same in make test-kubernetes, so that a change is compared
	// by the requests that its base was. make differential chooses another.
	seed = flag.Uint64("seed", 1, "the seed of the random choices")
	// keep is for a run that searches for differences.
	keep = flag.String("keep", "", "file to which scenarios that show a difference are appended")
)

var (
	// pair is the two sides, which the tests share.
	pair *sides.Pair
	// both runs scenarios on them, and ownGroup through Borough's own group.
	both, ownGroup *runner
)

func TestMain(m *testing.M) { harness.Main(m, run) }

func run(m *testing.M) (code int, err error) {
	ctx := context.Background()
	if pair, err = sides.Start(ctx); err != nil {
		return 0, err
	}
	defer func() {
		if err != nil {
			fmt.Fprintln(os.Stderr, pair.Logs())
		}
		err = errors.Join(err, pair.Stop())
	}()
	if both, err = newRunner(ctx, pair); err != nil {
		return 0, err
	}
	if ownGroup, err = both.inOwnGroup(ctx, pair); err != nil {
		return 0, err
	}
	code = m.Run()
	summarize()
	return code, nil
}
