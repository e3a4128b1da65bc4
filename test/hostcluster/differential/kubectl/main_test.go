// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

// Package kubectl runs scripts of kubectl commands against kube-apiserver and
// against Borough and compares what people and their own scripts see: the
// standard output, the standard error and the exit code of each command. Only the
// group's name may differ, and what the list of known differences names.
package kubectl

import (
	"context"
	"errors"
	"fmt"
	"os"
	"testing"

	"github.com/borough-io/borough/test/e2e/harness"
	"github.com/borough-io/borough/test/hostcluster/differential/sites"
)

// pair is what the scripts of all tests run against.
var pair *sites.Pair

func TestMain(m *testing.M) { harness.Main(m, run) }

func run(m *testing.M) (code int, err error) {
	if pair, err = sites.Start(context.Background()); err != nil {
		return 0, err
	}
	defer func() {
		if err != nil {
			fmt.Fprintln(os.Stderr, pair.Logs())
		}
		err = errors.Join(err, pair.Stop())
	}()
	return m.Run(), nil
}
