// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

// Package deployment deploys Borough into a real Kubernetes cluster as
// docs/deploy.md says, with kubectl apply -k artifacts/deploy, and runs what the
// cluster then holds: the arguments, volumes, probes, identities and rights are
// those of the applied objects.
package deployment

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
