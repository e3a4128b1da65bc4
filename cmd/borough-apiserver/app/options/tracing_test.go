// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package options

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"k8s.io/component-base/tracing"
)

// TestCollectorDoesNotRespond shuts down tracing whose spans cannot be sent, without a
// deadline, as the library does.
func TestCollectorDoesNotRespond(t *testing.T) {
	o := New()
	generic := &o.newGenericConfig().Config
	generic.TracerProvider = unresponsive{generic.TracerProvider}
	if err := o.applyTracing(generic); err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		if err := generic.TracerProvider.Shutdown(context.Background()); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v", err)
		}
	})
}

// unresponsive waits until the context ends.
type unresponsive struct{ tracing.TracerProvider }

func (unresponsive) Shutdown(ctx context.Context) error {
	<-ctx.Done()
	return ctx.Err()
}
