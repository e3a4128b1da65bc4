// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package event

import (
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apiserver/pkg/endpoints/request"
)

// TestLimiter checks how many Events are accepted at once, and in the long run.
func TestLimiter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, ctx := newLimiter(), request.WithNamespace(t.Context(), "a")
		accepted := func() (n int) {
			for ; ; n++ {
				if err := l.accept(ctx, nil); apierrors.IsTooManyRequests(err) {
					return n
				} else if err != nil {
					t.Fatal(err)
				}
			}
		}
		if n := accepted(); n != 500 {
			t.Errorf("%d were accepted at once, want 500", n)
		}
		time.Sleep(10 * time.Second)
		if n := accepted(); n != 100 {
			t.Errorf("%d were accepted after ten seconds, want 100", n)
		}
		if err := l.accept(request.WithNamespace(t.Context(), "b"), nil); err != nil {
			t.Errorf("in another Namespace: %v", err)
		}
	})
}
