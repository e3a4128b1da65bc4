// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package differential

import (
	"context"
	"slices"
	"time"
)

// shrinkRuns and shrinkTime bound the runs of a scenario that reduce it. In these, steps
// settle in shrinkSettleTime, or the first one would take all the time.
const (
	shrinkRuns       = 400
	shrinkTime       = time.Minute
	shrinkSettleTime = 10 * time.Second
)

// shrink returns the smallest scenario found for which the responses to the
// same request still differ, and the mismatch.
func (r *runner) shrink(ctx context.Context, s scenario, m *mismatch) (scenario, *mismatch) {
	s = clone(s)
	if m.step < 0 { // creating the Namespace failed
		return s, m
	}
	s.Steps = s.Steps[:m.step+1]
	runs, end := 0, time.Now().Add(shrinkTime)
	// stillDiffers reports whether the changed scenario still shows the mismatch.
	stillDiffers := func() bool {
		if runs >= shrinkRuns || time.Now().After(end) {
			return false
		}
		runs++
		found, err := r.run(ctx, s, shrinkSettleTime)
		if err != nil || found == nil || !found.isPartOf(m) {
			return false
		}
		m.step = found.step
		return true
	}
	for smaller := true; smaller && runs < shrinkRuns; {
		smaller = false
		for i := len(s.Steps) - 2; i >= 0; i-- {
			if s.Steps[i].Settle {
				continue // without it, the responses may differ by chance
			}
			steps := s.Steps
			s.Steps = slices.Delete(slices.Clone(steps), i, i+1)
			if stillDiffers() {
				smaller = true
			} else {
				s.Steps = steps
			}
		}
		for i := len(s.Steps) - 1; i >= 0; i-- {
			step := &s.Steps[i]
			if shrinkValue(step.Body, func(v any) { step.Body = v }, stillDiffers) {
				smaller = true
			}
		}
	}
	if found, err := r.run(ctx, s, settleTime); err == nil && found != nil {
		m = found
	}
	return s, m
}

// shrinkValue removes parts of a value, outer parts first, as long as
// stillDiffers returns true. It reports whether it removed any.
func shrinkValue(value any, set func(any), stillDiffers func() bool) (smaller bool) {
	switch value := value.(type) {
	case map[string]any:
		for key, item := range value {
			delete(value, key)
			if stillDiffers() {
				smaller = true
				continue
			}
			value[key] = item
		}
		for key, item := range value {
			smaller = shrinkValue(item, func(v any) { value[key] = v }, stillDiffers) || smaller
		}
	case []any:
		for i := len(value) - 1; i >= 0; i-- {
			shorter := slices.Delete(slices.Clone(value), i, i+1)
			set(shorter)
			if stillDiffers() {
				value, smaller = shorter, true
				continue
			}
			set(value)
		}
		for i, item := range value {
			smaller = shrinkValue(item, func(v any) { value[i] = v }, stillDiffers) || smaller
		}
	}
	return smaller
}
