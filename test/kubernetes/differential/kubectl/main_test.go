// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

// Package kubectl runs scripts of kubectl commands against kube-apiserver and
// against Borough and compares what users and their scripts see: the standard
// output, standard error and exit code of each command. Only the name of the
// group and the known differences may differ.
package kubectl

import (
	"context"
	"errors"
	"fmt"
	"os"
	"testing"

	"github.com/borough-io/borough/test/e2e/harness"
	"github.com/borough-io/borough/test/kubernetes/differential/sites"
)

// pair is used by the scripts of all tests.
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
