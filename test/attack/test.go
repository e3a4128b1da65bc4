// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package attack

import (
	"testing"

	"github.com/borough-io/borough/test/harness"
)

// Test runs an attack on a server. It fails the test if the server does not withstand
// a request, has a data race or panics. The options need no log.
func Test(t *testing.T, server *harness.Process, options Options) {
	t.Helper()
	options.Server.Log, options.Logf = server.Output, t.Logf
	report, err := Run(t.Context(), options)
	if report != nil {
		t.Log(report)
	}
	if err != nil {
		t.Fatal(err)
	}
	if len(report.Findings) > 0 {
		t.Errorf("the server failed %d requests; -seed=%d repeats the run", len(report.Findings), options.Seed)
	}
	if err := server.Flaws(); err != nil {
		t.Error(err)
	}
}
