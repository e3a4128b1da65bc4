// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package unanswered

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// scriptedCall returns after a time, or when the context ends.
type scriptedCall struct {
	after time.Duration
	err   error
}

// TestHedge sends a request to members of which some hang, with a timeout of two seconds.
func TestHedge(t *testing.T) {
	failure := errors.New("no connection")
	const hangs = time.Hour
	for name, test := range map[string]struct {
		script []scriptedCall
		want   error
		after  time.Duration
		calls  int64
	}{
		"answers":                    {[]scriptedCall{{0, nil}}, nil, 0, 1},
		"fails":                      {[]scriptedCall{{0, failure}, {0, failure}}, failure, 0, 2},
		"one fails":                  {[]scriptedCall{{0, failure}, {0, nil}}, nil, 0, 2},
		"one fails late":             {[]scriptedCall{{1500 * time.Millisecond, failure}, {900 * time.Millisecond, nil}}, nil, 1900 * time.Millisecond, 2},
		"is slow":                    {[]scriptedCall{{1900 * time.Millisecond, nil}, {hangs, nil}}, nil, 1900 * time.Millisecond, 2},
		"one hangs":                  {[]scriptedCall{{hangs, nil}, {0, nil}}, nil, time.Second, 2},
		"one hangs, the other fails": {[]scriptedCall{{hangs, nil}, {0, failure}}, context.DeadlineExceeded, 2 * time.Second, 2},
		"both hang":                  {[]scriptedCall{{hangs, nil}, {hangs, nil}}, context.DeadlineExceeded, 2 * time.Second, 2},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
				defer cancel()
				var calls atomic.Int64
				began := time.Now()
				_, err := Hedge(ctx, time.Second, func(ctx context.Context) (struct{}, error) {
					call := test.script[calls.Add(1)-1]
					select {
					case <-time.After(call.after):
						return struct{}{}, call.err
					case <-ctx.Done():
						return struct{}{}, ctx.Err()
					}
				})
				if took := time.Since(began); !errors.Is(err, test.want) || took != test.after || calls.Load() != test.calls {
					t.Errorf("got %v after %s and %d calls, want %v after %s and %d", err, took, calls.Load(), test.want, test.after, test.calls)
				}
			})
		})
	}
}
