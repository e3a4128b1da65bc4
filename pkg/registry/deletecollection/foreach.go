// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package deletecollection

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"runtime/debug"
	"sync"
	"sync/atomic"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"

	tenancyerrors "github.com/borough-io/borough/pkg/apis/tenancy/errors"
)

// ForEach calls f for each object of a page, with as many workers as the store has for
// collections. An error that concerns only its object does not stop the others. Any other
// error stops the worker that got it, so that ForEach makes no more than one call per
// worker to a storage or a webhook that does not answer. ForEach returns an error that
// stopped a worker, if there is one, and otherwise that of the first object that failed,
// in the order of the page.
func (d *Deleter) ForEach(ctx context.Context, page []runtime.Object, f func(context.Context, runtime.Object) error) error {
	var (
		wg      sync.WaitGroup
		mu      sync.Mutex
		stopped error // an error that stopped a worker
		refused error // that of the first object that was refused
		index   int   // of that object
		next    atomic.Int64
		// panicked is the reason and stack of the first panic. The server
		// survives a panic only in the goroutine that serves the request, so it
		// is repeated there.
		panicked atomic.Pointer[string]
	)
	fail := func(i int, err error) (stop bool) {
		mu.Lock()
		defer mu.Unlock()
		if !IsRefused(err) {
			stopped = cmp.Or(stopped, err)
			return true
		}
		if refused == nil || i < index {
			refused, index = err, i
		}
		return false
	}
	for range max(1, min(d.Store.DeleteCollectionWorkers, len(page))) {
		wg.Go(func() {
			defer func() {
				if reason := recover(); reason != nil {
					panicked.CompareAndSwap(nil, new(fmt.Sprintf("%v\n%s", reason, debug.Stack())))
				}
			}()
			for {
				i := int(next.Add(1)) - 1
				if i >= len(page) {
					return
				}
				err := ctx.Err()
				if err == nil {
					err = f(ctx, page[i])
				}
				if err != nil && fail(i, err) {
					return
				}
			}
		})
	}
	wg.Wait()
	if reason := panicked.Load(); reason != nil {
		panic(*reason)
	}
	return cmp.Or(stopped, refused)
}

// IsRefused reports whether the error says that one request was not acceptable,
// and not that the server was unable to handle requests at that moment. An internal
// error, which is also that of a webhook that fails, is of the latter kind. While etcd
// is full, an object that has to be marked is refused, but others can be removed.
func IsRefused(err error) bool {
	if tenancyerrors.IsStorageFull(err) {
		return true
	}
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return false
	}
	code := status.Status().Code
	return code >= http.StatusBadRequest && code < http.StatusInternalServerError && code != http.StatusTooManyRequests
}
