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

// TestTakeThatEnds checks that a turn waits while no transaction may be sent, and that a request
// that ends while it waits does not keep the turn.
func TestTakeThatEnds(t *testing.T) {
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for name, p := range map[string]*pipeline{
		"as many are in flight as may be":   {inFlight: 2, limit: 2, predicted: &known{}},
		"one in flight was not carried out": {inFlight: 1, limit: 2},
	} {
		p.turn, p.answer, p.goal = make(chan struct{}, 1), make(chan struct{}, 1), 1
		// The select in take chooses at random if the turn is free and the context has ended.
		for range 50 {
			if err := p.take(ended); err == nil {
				t.Fatalf("%s: it has the turn", name)
			}
			if len(p.turn) > 0 {
				t.Fatalf("%s: the turn was not passed", name)
			}
		}
	}
}
