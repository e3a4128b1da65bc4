// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package deletecollection_test

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
	"github.com/borough-io/borough/pkg/registry/deletecollection"
	"github.com/borough-io/borough/pkg/registry/registrytest"
	"github.com/borough-io/borough/pkg/storage/storagetest"
)

// TestErrors shows which errors stop the deletion of the other objects.
func TestErrors(t *testing.T) {
	member := storagetest.StartEmbedded(t)
	t.Run("rejected", func(t *testing.T) {
		r := registrytest.New(t, member)
		r.CreatePods(t, 20)
		protected := []string{"p00", "p01", "p02", "p03", "p04", "p15"} // more than there are workers
		validate := func(_ context.Context, obj runtime.Object) error {
			if name := obj.(*tenancy.Pod).Name; slices.Contains(protected, name) {
				return apierrors.NewForbidden(tenancy.Resource("pods"), name, errors.New("not this one"))
			}
			return nil
		}
		deleter := deletecollection.Deleter{Store: r.Pods.Store, PageSize: 10}
		_, err := deleter.DeleteCollection(r.Context, validate, background(), nil)
		if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), `"p00"`) {
			t.Errorf("got the error %v, want that of the first Pod", err)
		}
		if diff := cmp.Diff(protected, r.PodNames(t)); diff != "" {
			t.Errorf("left (-want +got):\n%s", diff)
		}
	})
	for name, failure := range map[string]error{
		"no status":  errors.New("away"),
		"internal":   apierrors.NewInternalError(errors.New("away")),
		"overloaded": apierrors.NewTooManyRequests("away", 1),
	} {
		t.Run(name, func(t *testing.T) {
			r := registrytest.New(t, member)
			r.CreatePods(t, 20)
			var calls atomic.Int64
			validate := func(context.Context, runtime.Object) error {
				calls.Add(1)
				return failure
			}
			_, err := r.Pods.DeleteCollection(r.Context, validate, background(), nil)
			if err == nil || !strings.Contains(err.Error(), "away") {
				t.Errorf("got the error %v", err)
			}
			if workers := int64(r.Pods.DeleteCollectionWorkers); calls.Load() > workers {
				t.Errorf("%d objects were tried, want one for each of the %d workers", calls.Load(), workers)
			}
			if left := r.PodNames(t); len(left) != 20 {
				t.Errorf("%d are left", len(left))
			}
		})
	}
	t.Run("panic", func(t *testing.T) {
		r := registrytest.New(t, member)
		r.CreatePods(t, 5)
		defer func() {
			if reason := fmt.Sprint(recover()); !strings.HasPrefix(reason, "the matter\n") || !strings.Contains(reason, "errors_test.go") {
				t.Errorf("recovered %s", reason)
			}
		}()
		_, err := r.Pods.DeleteCollection(r.Context, func(context.Context, runtime.Object) error { panic("the matter") }, background(), nil)
		t.Errorf("got the error %v, want the panic", err)
	})
	t.Run("cancelled", func(t *testing.T) {
		r := registrytest.New(t, member)
		r.CreatePods(t, 20)
		ctx, cancel := context.WithCancel(r.Context)
		validate := func(context.Context, runtime.Object) error {
			cancel()
			return nil
		}
		if _, err := r.Pods.DeleteCollection(ctx, validate, background(), nil); !errors.Is(err, context.Canceled) {
			t.Errorf("got the error %v", err)
		}
		if left := r.PodNames(t); len(left) < 20-r.Pods.DeleteCollectionWorkers {
			t.Errorf("%d are left", len(left))
		}
	})
}
