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

	v1 "github.com/borough-io/borough/pkg/apis/tenancy/v1"
	"github.com/borough-io/borough/pkg/generated/clientset/versioned/fake"
)

// TestInformerRetries starts an informer while the API is not available, for an hour.
// It has synced a second after the API is.
func TestInformerRetries(t *testing.T) {
	for name, unavailable := range map[string]error{
		"no connection":       errors.New("connection refused"),
		"no APIService":       apierrors.NewNotFound(v1.Resource("namespaces"), ""),
		"service unavailable": apierrors.NewServiceUnavailable("no endpoints"),
		"too many requests":   apierrors.NewTooManyRequests("busy", 1),
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				client := fake.NewClientset()
				var available atomic.Bool
				client.PrependReactor("list", "*", func(clienttesting.Action) (bool, runtime.Object, error) {
					return !available.Load(), nil, unavailable
				})
				client.PrependWatchReactor("*", func(clienttesting.Action) (bool, watch.Interface, error) {
					return !available.Load(), nil, unavailable
				})
				informer := newInformer(client)
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
				available.Store(true)
				time.Sleep(time.Second)
				if !informer.HasSynced() {
					t.Error("not synced a second after the API is available")
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
		_, got := untilAvailable(t.Context(), func() (int, error) {
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
	if _, err := untilAvailable(ctx, func() (int, error) {
		if calls++; calls == 3 {
			cancel()
		}
		return 0, errors.New("connection refused")
	}); err == nil || calls != 3 {
		t.Errorf("%d calls, error %v", calls, err)
	}
}
