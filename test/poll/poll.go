// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

// Package poll waits in tests: for a state that no watch reports, and between the
// requests of a load.
package poll

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

// eventuallyTimeout is how long Eventually waits. A test reaches it only if it
// fails. Components of Kubernetes wait for up to a minute before they try again.
const eventuallyTimeout = 3 * time.Minute

// interval grows from one call of a condition to the next.
var interval = wait.Backoff{Duration: time.Millisecond, Factor: 2, Steps: 5, Cap: 20 * time.Millisecond}

// Until calls the condition until it returns nil, for at most the timeout. It then
// returns the last error of the condition.
func Until(ctx context.Context, timeout time.Duration, condition func(context.Context) error) error {
	ctx, cancel := context.WithTimeoutCause(ctx, timeout, fmt.Errorf("timed out after %s", timeout))
	defer cancel()
	var last error
	err := interval.DelayFunc().Until(ctx, true, true, func(ctx context.Context) (bool, error) {
		err := condition(ctx)
		if ctx.Err() == nil || last == nil {
			last = err // rather than that of the context
		}
		return err == nil, nil
	})
	switch {
	case err == nil:
		return nil
	case last == nil:
		return context.Cause(ctx)
	}
	return fmt.Errorf("%w: %w", context.Cause(ctx), last)
}

// Sleep waits for the duration, or returns the cause when the context ends first.
func Sleep(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return nil
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-timer.C:
		return nil
	}
}

// Eventually waits until the condition returns an empty string. If it does not,
// the test fails with the last reason that the condition returned.
func Eventually(t testing.TB, condition func() (reason string)) {
	t.Helper()
	// Not the context of the test, which has ended in a cleanup.
	err := Until(context.Background(), eventuallyTimeout, func(context.Context) error {
		if reason := condition(); reason != "" {
			return errors.New(reason)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// IsOver reports whether the channel is closed or the context has ended.
func IsOver(ctx context.Context, over <-chan struct{}) bool {
	select {
	case <-over:
		return true
	case <-ctx.Done():
		return true
	default:
		return false
	}
}
