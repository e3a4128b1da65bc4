// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package namespace

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/cache"

	v1 "github.com/borough-io/borough/pkg/apis/tenancy/v1"
	"github.com/borough-io/borough/pkg/generated/clientset/versioned/fake"
)

// TestInformerRetries starts an informer while the API is not available, for an hour.
// It has synced a second after the API is; if the API has refused the requests, with the
// delay of the library.
func TestInformerRetries(t *testing.T) {
	for name, test := range map[string]struct {
		unavailable error
		within      time.Duration
	}{
		"no connection":       {errors.New("connection refused"), time.Second},
		"no APIService":       {apierrors.NewNotFound(v1.Resource("namespaces"), ""), time.Second},
		"service unavailable": {apierrors.NewServiceUnavailable("no endpoints"), time.Second},
		"too many requests":   {apierrors.NewTooManyRequests("busy", 1), time.Second},
		"no right":            {apierrors.NewForbidden(v1.Resource("namespaces"), "", nil), 2 * time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				client := fake.NewClientset()
				var available atomic.Bool
				client.PrependReactor("list", "*", func(clienttesting.Action) (bool, runtime.Object, error) {
					return !available.Load(), nil, test.unavailable
				})
				client.PrependWatchReactor("*", func(clienttesting.Action) (bool, watch.Interface, error) {
					return !available.Load(), nil, test.unavailable
				})
				api := &availability{}
				informer := newInformer(client, api)
				// That of the library sleeps until the time at which the process has started.
				if err := informer.SetWatchErrorHandlerWithContext(func(context.Context, *cache.Reflector, error) {}); err != nil {
					t.Fatal(err)
				}
				ctx, cancel := context.WithCancel(t.Context())
				done := make(chan struct{})
				go func() {
					defer close(done)
					informer.RunWithContext(ctx)
				}()
				time.Sleep(time.Hour)
				if informer.HasSynced() {
					t.Error("synced without the API")
				}
				if failing := api.failing(); failing < time.Hour {
					t.Errorf("the API is unavailable for %s, want an hour", failing)
				}
				available.Store(true)
				time.Sleep(test.within)
				if failing := api.failing(); !informer.HasSynced() || failing != 0 {
					t.Errorf("%s after the API is available: synced %v, unavailable for %s", test.within, informer.HasSynced(), failing)
				}
				cancel()
				<-done
			})
		})
	}
}

// TestInformerReportsErrors checks that an error that a retry does not change reaches
// the informer, which handles it.
func TestInformerReportsErrors(t *testing.T) {
	tooLarge := apierrors.NewTimeoutError("Too large resource version: 2, current: 1", 1)
	tooLarge.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: metav1.CauseTypeResourceVersionTooLarge}}
	for _, err := range []error{
		tooLarge,
		apierrors.NewForbidden(v1.Resource("namespaces"), "", nil),
		apierrors.NewResourceExpired("too old"),
		apierrors.NewBadRequest("no"),
	} {
		calls := 0
		_, got := untilAvailable(t.Context(), &availability{}, func() (int, error) {
			if calls++; calls > 1 {
				return 0, nil
			}
			return 0, err
		})
		if got != err {
			t.Errorf("got %v after %d calls, want %v", got, calls, err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	calls := 0
	if _, err := untilAvailable(ctx, &availability{}, func() (int, error) {
		if calls++; calls == 3 {
			cancel()
		}
		return 0, errors.New("connection refused")
	}); err == nil || calls != 3 {
		t.Errorf("%d calls, error %v", calls, err)
	}
}
