// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package unanswered

import (
	"context"
	"time"
)

// Hedge calls request, and once more if it fails, or has not returned after the delay: one member
// may hang, or be stopping, and the client of etcd sends the second request to another one. Hedge
// returns the first response or, if both calls fail, the result of the last. Then the context of
// the calls ends.
func Hedge[R any](ctx context.Context, delay time.Duration, request func(context.Context) (R, error)) (R, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	type result struct {
		response R
		err      error
	}
	results := make(chan result, 2)
	call := func() {
		response, err := request(ctx)
		results <- result{response, err}
	}
	go call()
	timer := time.NewTimer(delay)
	defer timer.Stop()
	var first result
	select {
	case first = <-results:
		if first.err != nil {
			go call()
		}
	case <-timer.C:
		go call()
		first = <-results
	}
	if first.err == nil {
		return first.response, nil
	}
	last := <-results
	return last.response, last.err
}
