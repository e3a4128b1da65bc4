// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package poll_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/borough-io/borough/test/poll"
)

func TestUntil(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		calls := 0
		if err := poll.Until(t.Context(), time.Minute, func(context.Context) error {
			if calls++; calls < 100 {
				return errors.New("not yet")
			}
			return nil
		}); err != nil || calls != 100 {
			t.Errorf("got %v after %d calls", err, calls)
		}

		state := errors.New("the state")
		err := poll.Until(t.Context(), time.Minute, func(ctx context.Context) error {
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-time.After(7 * time.Second):
				return state
			}
		})
		if want := "timed out after 1m0s: the state"; !errors.Is(err, state) || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
	})
}
