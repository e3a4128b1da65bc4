// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package testcluster

import (
	"fmt"
	"sync"
	"testing"
	"time"
)

// Failures collects the errors of clients for the end of a test. Its methods can be called
// concurrently.
type Failures struct {
	mu   sync.Mutex
	errs []error
}

// Add adds an error, with the time.
func (f *Failures) Add(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.errs = append(f.errs, fmt.Errorf("at %s: %w", time.Now().Format(time.StampMilli), err))
}

// Count returns the number of errors.
func (f *Failures) Count() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.errs)
}

// Report fails the test if there are any.
func (f *Failures) Report(t *testing.T) {
	t.Helper()
	f.mu.Lock()
	defer f.mu.Unlock()
	for i, err := range f.errs {
		if i == 10 {
			t.Errorf("and %d more", len(f.errs)-i)
			break
		}
		t.Error(err)
	}
}
