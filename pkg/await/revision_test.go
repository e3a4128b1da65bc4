// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package await_test

import (
	"context"
	"testing"

	"github.com/borough-io/borough/pkg/await"
)

func TestRevision(t *testing.T) {
	var r await.Revision
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if err := r.Await(ended, 1); err == nil {
		t.Error("revision 1 was reached at once")
	}
	done := make(chan error, 2)
	for _, value := range []int64{3, 5} {
		go func() { done <- r.Await(t.Context(), value) }()
	}
	r.Reach(4)
	r.Reach(2) // does not shrink
	if err := <-done; err != nil || r.Get() != 4 {
		t.Errorf("got %v, and %d is reached", err, r.Get())
	}
	select {
	case <-done:
		t.Error("revision 5 was reached")
	default:
	}
	r.Reach(5)
	if err := <-done; err != nil {
		t.Error(err)
	}
}
