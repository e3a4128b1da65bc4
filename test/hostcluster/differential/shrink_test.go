// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package differential

import (
	"context"
	"slices"
)

// shrinkRuns is how many times a scenario is run to make it smaller.
const shrinkRuns = 400

// shrink returns the smallest scenario found in which the same request is still
// answered differently, and how it is.
func (r *runner) shrink(ctx context.Context, s scenario, m *mismatch) (scenario, *mismatch) {
	s = clone(s)
	if m.step < 0 { // making the Namespace failed
		return s, m
	}
	s.Steps = s.Steps[:m.step+1]
	runs := 0
	// try says whether the scenario, as changed, still shows it.
	try := func() bool {
		if runs >= shrinkRuns {
			return false
		}
		runs++
		found, err := r.run(ctx, s)
		if err != nil || found == nil || !found.like(m) {
			return false
		}
		m.step = found.step
		return true
	}
	for smaller := true; smaller && runs < shrinkRuns; {
		smaller = false
		for i := len(s.Steps) - 2; i >= 0; i-- {
			steps := s.Steps
			s.Steps = slices.Delete(slices.Clone(steps), i, i+1)
			if try() {
				smaller = true
			} else {
				s.Steps = steps
			}
		}
		for i := len(s.Steps) - 1; i >= 0; i-- {
			step := &s.Steps[i]
			if shrinkValue(step.Body, func(v any) { step.Body = v }, try) {
				smaller = true
			}
		}
	}
	if found, err := r.run(ctx, s); err == nil && found != nil {
		m = found
	}
	return s, m
}

// shrinkValue takes out what is in a value, as long as try agrees, outer parts
// first. It says whether anything is gone.
func shrinkValue(value any, set func(any), try func() bool) (smaller bool) {
	switch value := value.(type) {
	case map[string]any:
		for key, item := range value {
			delete(value, key)
			if try() {
				smaller = true
				continue
			}
			value[key] = item
		}
		for key, item := range value {
			smaller = shrinkValue(item, func(v any) { value[key] = v }, try) || smaller
		}
	case []any:
		for i := len(value) - 1; i >= 0; i-- {
			shorter := slices.Delete(slices.Clone(value), i, i+1)
			set(shorter)
			if try() {
				value, smaller = shorter, true
				continue
			}
			set(value)
		}
		for i, item := range value {
			smaller = shrinkValue(item, func(v any) { value[i] = v }, try) || smaller
		}
	}
	return smaller
}
