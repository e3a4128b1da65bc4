// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/testutil"
)

// TestClock sets the clock while a loop waits for a time that is far away.
func TestClock(t *testing.T) {
	for name, test := range map[string]struct {
		set   time.Duration
		syncs int
	}{
		"not set":  {0, 1},
		"adjusted": {clockTolerance / 2, 1},
		"forward":  {365 * 24 * time.Hour, 2},
		"backward": {-24 * time.Hour, 2},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				syncs := 0
				loop := NewLoop("failed", func(context.Context) (time.Time, error) {
					syncs++
					return time.Now().Add(90 * 24 * time.Hour), nil
				})
				var set atomic.Int64
				loop.wallClock = func() time.Time { return time.Now().Round(0).Add(time.Duration(set.Load())) }
				ctx, cancel := context.WithCancel(t.Context())
				done := make(chan struct{})
				go func() {
					defer close(done)
					loop.Run(ctx)
				}()
				synctest.Wait()
				set.Store(int64(test.set))
				time.Sleep(2 * clockInterval)
				synctest.Wait()
				if syncs != test.syncs {
					t.Errorf("%d calls of sync, want %d", syncs, test.syncs)
				}
				cancel()
				<-done
			})
		})
	}
}

// TestMetric has a loop fail, and then succeed.
func TestMetric(t *testing.T) {
	RegisterMetrics(metrics.NewKubeRegistry().MustRegister)
	want := func(want float64) {
		t.Helper()
		if value, err := testutil.GetGaugeMetricValue(failingGauge); err != nil || value != want {
			t.Errorf("%v (%v), want %v", value, err, want)
		}
	}
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		want(0)
		var works atomic.Bool
		loop := NewLoop("failed", func(context.Context) (time.Time, error) {
			if !works.Load() {
				return time.Time{}, errors.New("the Secret does not exist")
			}
			return time.Now().Add(time.Hour), nil
		})
		go loop.Run(ctx)
		synctest.Wait()
		want(1)
		works.Store(true)
		time.Sleep(time.Minute)
		synctest.Wait()
		want(0)
	})
}
