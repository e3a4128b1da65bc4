// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package namespace

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/types"

	v1 "github.com/borough-io/borough/pkg/apis/tenancy/v1"
)

// TestLongFirstPassAmongHanging has many Namespaces hang in all their passes. One with much content,
// whose first pass is canceled because they have the slots, does not wait for all of them.
func TestLongFirstPassAmongHanging(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const hanging = 30
		b := newBench(t, 1, func(ctx context.Context, b *bench, ns *v1.Namespace) error {
			took := 10 * time.Second
			if ns.Name == "large" {
				took = 3 * firstPassTimeout
			}
			select {
			case <-time.After(took):
			case <-ctx.Done():
				return ctx.Err()
			}
			if ns.Name == "large" {
				return b.remove(ns)
			}
			return errors.New("hangs")
		})
		for i := range hanging {
			b.create(terminating(fmt.Sprint("hangs-", i), types.UID(fmt.Sprint(i))))
		}
		time.Sleep(time.Hour)
		b.create(terminating("large", "large"))
		time.Sleep(time.Hour)
		var before int // passes over others before the second pass over it
		passes := 0
		b.mu.Lock()
		for _, a := range b.attempts {
			switch {
			case a.name == "large":
				passes++
			case passes == 1:
				before++
			}
		}
		b.mu.Unlock()
		// One has the slot, one has the turn, and the slot may be taken by one that did not wait.
		if passes != 2 || before > hanging/5 {
			t.Errorf("%d passes, with %d passes over Namespaces that hang between them; want 2 and at most %d", passes, before, hanging/5)
		}
		b.stop()
	})
}

// TestSlotsTakeTurns checks that neither the first retries nor the others keep the rest waiting.
func TestSlotsTakeTurns(t *testing.T) {
	s := newSlots(0)
	for _, key := range []string{"a", "b", "c", "d", "b"} {
		s.acquire(key, false)
	}
	for _, key := range []string{"first", "second", "a", "first"} {
		s.acquire(key, true)
	}
	if key, ok := s.next(); ok {
		t.Errorf("got %s, but no slot is free", key)
	}
	s.release()
	var got []string
	for key, ok := s.next(); ok; key, ok = s.next() {
		got = append(got, key)
	}
	if want := []string{"first", "a", "second", "b", "a", "c", "d"}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}
