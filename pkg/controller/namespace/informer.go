// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package namespace

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	v1 "github.com/borough-io/borough/pkg/apis/tenancy/v1"
	"github.com/borough-io/borough/pkg/generated/clientset/versioned"
	tenancyinformers "github.com/borough-io/borough/pkg/generated/informers/externalversions/tenancy/v1"
)

const (
	// retryInterval is between two attempts to list or watch while the API is not
	// available, plus up to as much again.
	retryInterval = 300 * time.Millisecond
	// retryLogInterval is between two lines in the log about that.
	retryLogInterval = 30 * time.Second
)

// newInformer returns an informer of the Terminating Namespaces. The server selects
// them: the others, however many, cost neither memory nor traffic here.
//
// If the API was not available for long, the informers of the library wait for up to a
// minute before they try again, in which no Namespace would be purged. This one tries
// again all the time.
func newInformer(client versioned.Interface, api *availability) tenancyinformers.NamespaceIndexInformer {
	terminating := fields.OneTermEqualSelector("status.phase", string(v1.NamespaceTerminating)).String()
	namespaces := client.TenancyV1().Namespaces()
	return cache.NewTypedSharedIndexInformer[*v1.Namespace](cache.NewSharedIndexInformer(
		cache.ToListWatcherWithWatchListSemantics(&cache.ListWatch{
			ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
				o.FieldSelector = terminating
				return untilAvailable(ctx, api, func() (*v1.NamespaceList, error) { return namespaces.List(ctx, o) })
			},
			WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
				o.FieldSelector = terminating
				return untilAvailable(ctx, api, func() (watch.Interface, error) { return namespaces.Watch(ctx, o) })
			},
		}, client), &v1.Namespace{}, 0, nil))
}

// sendOnce is a client for the informer, which retries by itself. With Retry-After, the
// client of the library would send a request up to eleven times first. With a
// resourceVersion that is too large, that takes 40 seconds.
type sendOnce struct{ rest.Interface }

func (c sendOnce) Get() *rest.Request { return c.Interface.Get().MaxRetries(0) }

// untilAvailable sends a request until the API responds, or the context ends.
func untilAvailable[T any](ctx context.Context, api *availability, send func() (T, error)) (T, error) {
	logged := time.Time{}
	for {
		response, err := send()
		if ctx.Err() == nil {
			api.record(err)
		}
		if err == nil || ctx.Err() != nil || !isUnavailable(err) {
			return response, err
		}
		if time.Since(logged) >= retryLogInterval {
			klog.FromContext(ctx).Info("The API is not available, will retry", "err", err)
			logged = time.Now()
		}
		select {
		case <-ctx.Done():
			return response, err
		case <-time.After(wait.Jitter(retryInterval, 1)):
		}
	}
}

// availability records for how long all lists and watches of the informer have failed, because
// the API is not available or refuses them.
type availability struct {
	mu    sync.Mutex
	since time.Time // zero if the last request has succeeded
}

// record records the result of a request.
func (a *availability) record(err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	switch {
	case err == nil:
		a.since = time.Time{}
	case a.since.IsZero():
		a.since = time.Now()
	}
}

// failing returns for how long all requests have failed, 0 if the last one has succeeded.
func (a *availability) failing() time.Duration {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.since.IsZero() {
		return 0
	}
	return time.Since(a.since)
}

// isUnavailable reports whether the request can succeed when it is sent again: there
// was no response, or the server or the API was not there. A resourceVersion that is too
// large stays so if the data was replaced by older data; the informer then lists again.
func isUnavailable(err error) bool {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return true
	}
	if apierrors.HasStatusCause(err, metav1.CauseTypeResourceVersionTooLarge) {
		return false
	}
	code := status.Status().Code
	return code == http.StatusNotFound || code == http.StatusTooManyRequests || code >= http.StatusInternalServerError
}
