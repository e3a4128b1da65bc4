// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package collection_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/borough-io/borough/pkg/apis/tenancy"
	"github.com/borough-io/borough/pkg/storage/storagetest"
)

// TestErrors: what is refused for some does not keep the others; what fails for
// all is not tried for each.
func TestErrors(t *testing.T) {
	member := storagetest.StartEmbedded(t)
	for _, purge := range []bool{false, true} {
		t.Run(fmt.Sprintf("refused/purge=%t", purge), func(t *testing.T) {
			r := newRegistry(t, member)
			r.createPods(t, 20)
			protected := []string{"p00", "p01", "p02", "p03", "p04", "p15"} // more than there are workers
			ctx := r.ctx
			if purge {
				ctx = purging(ctx, r.terminate(t))
			}
			validate := func(_ context.Context, obj runtime.Object) error {
				if name := obj.(*tenancy.Pod).Name; slices.Contains(protected, name) {
					return apierrors.NewForbidden(tenancy.Resource("pods"), name, errors.New("not this one"))
				}
				return nil
			}
			_, err := r.pods.DeleteCollection(ctx, validate, background(), nil)
			if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), `"p00"`) {
				t.Errorf("got the error %v, want that of the first Pod", err)
			}
			if diff := cmp.Diff(protected, r.podNames(t)); diff != "" {
				t.Errorf("left (-want +got):\n%s", diff)
			}
		})
		for name, failure := range map[string]error{
			"no status":  errors.New("away"),
			"internal":   apierrors.NewInternalError(errors.New("away")),
			"overloaded": apierrors.NewTooManyRequests("away", 1),
		} {
			t.Run(fmt.Sprintf("%s/purge=%t", name, purge), func(t *testing.T) {
				r := newRegistry(t, member)
				r.createPods(t, 20)
				ctx := r.ctx
				if purge {
					ctx = purging(ctx, r.terminate(t))
				}
				var calls atomic.Int64
				validate := func(context.Context, runtime.Object) error {
					calls.Add(1)
					return failure
				}
				_, err := r.pods.DeleteCollection(ctx, validate, background(), nil)
				if err == nil || !strings.Contains(err.Error(), "away") {
					t.Errorf("got the error %v", err)
				}
				if workers := int64(r.pods.DeleteCollectionWorkers); calls.Load() > workers {
					t.Errorf("%d objects were tried, want one for each of the %d workers", calls.Load(), workers)
				}
				if left := r.podNames(t); len(left) != 20 {
					t.Errorf("%d are left", len(left))
				}
			})
		}
	}
	t.Run("panic", func(t *testing.T) {
		r := newRegistry(t, member)
		r.createPods(t, 5)
		defer func() {
			if reason := fmt.Sprint(recover()); !strings.HasPrefix(reason, "the matter\n") || !strings.Contains(reason, "errors_test.go") {
				t.Errorf("recovered %s", reason)
			}
		}()
		_, err := r.pods.DeleteCollection(r.ctx, func(context.Context, runtime.Object) error { panic("the matter") }, background(), nil)
		t.Errorf("got the error %v, want the panic", err)
	})
	t.Run("cancelled", func(t *testing.T) {
		r := newRegistry(t, member)
		r.createPods(t, 20)
		ctx, cancel := context.WithCancel(r.ctx)
		validate := func(context.Context, runtime.Object) error {
			cancel()
			return nil
		}
		if _, err := r.pods.DeleteCollection(ctx, validate, background(), nil); !errors.Is(err, context.Canceled) {
			t.Errorf("got the error %v", err)
		}
		if left := r.podNames(t); len(left) < 20-r.pods.DeleteCollectionWorkers {
			t.Errorf("%d are left", len(left))
		}
	})
}
