// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package charge

import (
	"context"
	"testing"
)

// TestAloneInTurn checks that a write that has to be alone waits for its turn, also if it
// did not need one before: it would take what wakes the write that has the turn.
func TestAloneInTurn(t *testing.T) {
	ns := &namespace{pipeline: newPipeline()}
	if err := ns.take(t.Context()); err != nil {
		t.Fatal(err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	c := &Charge{namespace: ns}
	if err := c.beAlone(ended); err == nil {
		t.Fatal("it is alone while another write has the turn")
	}
	ns.pass()
	if err := c.beAlone(t.Context()); err != nil {
		t.Fatal(err)
	}
	c.End()
	if err := ns.take(t.Context()); err != nil {
		t.Fatal(err)
	}
}
