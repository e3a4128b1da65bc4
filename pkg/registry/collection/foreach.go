// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package collection

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"runtime/debug"
	"sync"
	"sync/atomic"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
)

// forEach calls f for the objects, by that many workers side by side, and
// returns the error of the object that comes first. What is refused for one
// object says nothing about the others. Any other error ends the worker that it happened to, so that a
// storage or a webhook that does not answer is not asked for each object.
func forEach(ctx context.Context, workers int, objects []runtime.Object, f func(context.Context, runtime.Object) error) error {
	var (
		wg    sync.WaitGroup
		mu    sync.Mutex
		first error
		index int // of the object that first is about
		next  atomic.Int64
		// panicked is what a worker has panicked with. The server survives the
		// panic of a request only where the request is served.
		panicked atomic.Pointer[string]
	)
	fail := func(i int, err error) {
		mu.Lock()
		defer mu.Unlock()
		if first == nil || i < index {
			first, index = err, i
		}
	}
	for range max(1, min(workers, len(objects))) {
		wg.Go(func() {
			defer func() {
				if reason := recover(); reason != nil {
					panicked.CompareAndSwap(nil, new(fmt.Sprintf("%v\n%s", reason, debug.Stack())))
				}
			}()
			for {
				i := int(next.Add(1)) - 1
				if i >= len(objects) {
					return
				}
				err := ctx.Err()
				if err == nil {
					err = f(ctx, objects[i])
				}
				if err != nil {
					fail(i, err)
				}
				if err != nil && !refused(err) {
					return
				}
			}
		})
	}
	wg.Wait()
	if reason := panicked.Load(); reason != nil {
		panic(*reason)
	}
	return first
}

// refused tells whether the error is an answer to what was asked, other than
// one that would be given to everybody just then.
func refused(err error) bool {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return false
	}
	code := status.Status().Code
	return code >= http.StatusBadRequest && code < http.StatusInternalServerError && code != http.StatusTooManyRequests
}
