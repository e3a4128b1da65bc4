// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

// Package await waits: for what a process needs and does not have when it starts, and for
// a revision of etcd.
package await

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"k8s.io/klog/v2"
)

const (
	// interval is between two attempts.
	interval = 500 * time.Millisecond
	// logInterval is between two lines in the log.
	logInterval = 30 * time.Second
)

// Condition is something that a process waits for once.
type Condition struct {
	what   string
	status atomic.Pointer[error] // points to nil if the condition is met
}

// NewCondition returns a condition that is not met. The name of what is awaited is
// for the log and for errors.
func NewCondition(what string) *Condition {
	c := &Condition{what: what}
	err := errors.New("not tried yet")
	c.status.Store(&err)
	return c
}

// Check returns nil if the condition is met, and otherwise the error of the last
// attempt.
func (c *Condition) Check() error {
	if err := *c.status.Load(); err != nil {
		return fmt.Errorf("waiting for %s: %w", c.what, err)
	}
	return nil
}

// Meet records that the condition is met, which it then stays.
func (c *Condition) Meet() { c.status.Store(new(error)) }

// set records the result of an attempt, unless the condition is met, and reports
// whether it is met.
func (c *Condition) set(result error) bool {
	for {
		old := c.status.Load()
		if *old == nil {
			return true
		}
		if c.status.CompareAndSwap(old, &result) {
			return result == nil
		}
	}
}

// Await tries until the condition is met, or the context ends, and reports whether
// it is met. It logs what it waits for, at once and every 30 seconds.
func (c *Condition) Await(ctx context.Context, try func(context.Context) error) bool {
	logger := klog.FromContext(ctx)
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	began, logged := time.Now(), time.Time{}
	for {
		err := try(ctx)
		if ctx.Err() != nil {
			return false
		}
		if c.set(err) {
			if !logged.IsZero() {
				logger.Info("Waited for "+c.what, "time", time.Since(began).Round(time.Millisecond))
			}
			return true
		}
		if time.Since(logged) >= logInterval {
			logger.Info("Waiting for "+c.what, "err", err)
			logged = time.Now()
		}
		select {
		case <-ctx.Done():
			return false
		case <-ticker.C:
		}
	}
}
