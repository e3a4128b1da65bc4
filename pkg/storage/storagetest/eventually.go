// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package storagetest

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

// pollTimeout is the time that a state may take to be reached on a loaded machine.
const pollTimeout = 30 * time.Second

// Eventually calls try until it returns no error. It fails the test with the last
// error after a timeout.
func Eventually(t testing.TB, try func() error) {
	t.Helper()
	if err := eventually(try); err != nil {
		t.Fatal(err)
	}
}

func eventually(try func() error) error {
	last := errors.New("never tried")
	err := wait.PollUntilContextTimeout(context.Background(), time.Millisecond, pollTimeout, true, func(context.Context) (bool, error) {
		last = try()
		return last == nil, nil
	})
	if err != nil {
		return fmt.Errorf("after %v: %w", pollTimeout, last)
	}
	return nil
}
