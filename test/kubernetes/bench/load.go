// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

const manyClients = 32

// outcome has the measurements of a load.
type outcome struct {
	elapsed time.Duration
	each    []time.Duration
}

// load runs n operations with a number of clients as fast as they can, and
// stops at the first error.
func (s *side) load(ctx context.Context, clients, n int, do func(ctx context.Context, c *client, i int) error) (outcome, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	for i := range clients { // connect before the measurement starts
		c, err := s.client(i)
		if err != nil {
			return outcome{}, err
		}
		if err := c.get(ctx, "/livez", jsonType); err != nil {
			return outcome{}, err
		}
	}
	each := make([]time.Duration, n)
	var next atomic.Int64
	var working sync.WaitGroup
	began := time.Now()
	for _, c := range s.clients[:clients] {
		working.Go(func() {
			for i := int(next.Add(1)) - 1; i < n && ctx.Err() == nil; i = int(next.Add(1)) - 1 {
				sent := time.Now()
				if err := do(ctx, c, i); err != nil {
					cancel(err)
					return
				}
				each[i] = time.Since(sent)
			}
		})
	}
	working.Wait()
	return outcome{time.Since(began), each}, context.Cause(ctx)
}

// figures returns the rate of a load and the latency of its operations.
func (o outcome) figures(row string) []figure {
	return append([]figure{{row: row, unit: perSecond, value: float64(len(o.each)) / o.elapsed.Seconds()}}, quantiles(row, o.each)...)
}

func quantiles(row string, each []time.Duration) []figure {
	return []figure{
		{row: row + ", p50", unit: seconds, value: quantile(each, 0.50).Seconds()},
		{row: row + ", p99", unit: seconds, value: quantile(each, 0.99).Seconds()},
	}
}

// quantile returns the smallest value that is at least as large as the share q
// of all values.
func quantile(all []time.Duration, q float64) time.Duration {
	sorted := slices.Sorted(slices.Values(all))
	return sorted[max(int(math.Ceil(q*float64(len(sorted)))), 1)-1]
}

func clientsLabel(n int) string {
	if n == 1 {
		return "1 client"
	}
	return fmt.Sprintf("%d clients", n)
}

// number formats an integer with thousands separators.
func number(n int) string {
	if n < 1000 {
		return fmt.Sprint(n)
	}
	return fmt.Sprintf("%s,%03d", number(n/1000), n%1000)
}
