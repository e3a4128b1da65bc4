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
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/borough-io/borough/pkg/apis/tenancy"
	tenancyerrors "github.com/borough-io/borough/pkg/apis/tenancy/errors"
	"github.com/borough-io/borough/pkg/registry/deletecollection"
	"github.com/borough-io/borough/pkg/registry/registrytest"
	"github.com/borough-io/borough/pkg/storage"
	"github.com/borough-io/borough/pkg/storage/storagetest"
)

// TestErrors shows which errors stop the deletion of the other objects.
func TestErrors(t *testing.T) {
	member := storagetest.StartEmbedded(t)
	for name, failure := range map[string]error{
		"rejected":         apierrors.NewForbidden(tenancy.Resource("pods"), "x", errors.New("not this one")),
		"no space in etcd": tenancyerrors.NewStorageFull(errors.New("no space")),
	} {
		t.Run(name, func(t *testing.T) {
			r := registrytest.New(t, member)
			r.CreatePods(t, 20)
			protected := []string{"p00", "p01", "p02", "p03", "p04", "p15"} // more than there are workers
			last, end := context.WithCancel(t.Context())
			validate := func(_ context.Context, obj runtime.Object) error {
				name := obj.(*tenancy.Pod).Name
				switch name {
				case "p00": // is the last one that fails, if none stops a worker
					if apierrors.IsForbidden(failure) {
						<-last.Done()
					}
				case "p09":
					end()
				}
				if slices.Contains(protected, name) {
					return fmt.Errorf("%s: %w", name, failure)
				}
				return nil
			}
			deleter := deletecollection.Deleter{Store: r.Pods.Store, PageSize: 10}
			_, err := deleter.DeleteCollection(r.Context, validate, background(), nil)
			if !errors.Is(err, failure) || !strings.HasPrefix(err.Error(), "p00: ") {
				t.Errorf("got the error %v, want that of the first Pod", err)
			}
			if diff := cmp.Diff(protected, r.PodNames(t)); diff != "" {
				t.Errorf("left (-want +got):\n%s", diff)
			}
		})
	}
	for _, pageSize := range []int64{5, 20} {
		t.Run(fmt.Sprint("rejected, and then an error, pages of ", pageSize), func(t *testing.T) {
			r := registrytest.New(t, member)
			r.CreatePods(t, 20)
			validate := func(_ context.Context, obj runtime.Object) error {
				switch name := obj.(*tenancy.Pod).Name; name {
				case "p00":
					return apierrors.NewForbidden(tenancy.Resource("pods"), name, errors.New("not this one"))
				case "p10":
					return apierrors.NewInternalError(errors.New("the webhook does not answer"))
				}
				return nil
			}
			deleter := deletecollection.Deleter{Store: r.Pods.Store, PageSize: pageSize}
			if _, err := deleter.DeleteCollection(r.Context, validate, background(), nil); !apierrors.IsInternalError(err) {
				t.Errorf("got the error %v, want that of the webhook", err)
			}
		})
	}
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
			deleter := deletecollection.Deleter{Store: r.Pods.Store, PageSize: 10}
			_, err := deleter.DeleteCollection(r.Context, validate, background(), nil)
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

// TestNoWorkers deletes a collection where the option sets no number of workers.
func TestNoWorkers(t *testing.T) {
	r := registrytest.New(t, storagetest.StartEmbedded(t), func(o *storage.Options) { o.Etcd.DeleteCollectionWorkers = 0 })
	r.CreatePods(t, 2)
	if _, err := r.Pods.DeleteCollection(r.Context, rest.ValidateAllObjectFunc, background(), nil); err != nil {
		t.Fatal(err)
	}
	if left := r.PodNames(t); len(left) > 0 {
		t.Errorf("%v are left", left)
	}
}
