// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package boroughtest_test

import (
	"fmt"
	"sync"
	"testing"

	"github.com/borough-io/borough/boroughtest"
)

// BenchmarkStart starts servers in a process that has started one before.
func BenchmarkStart(b *testing.B) {
	boroughtest.Shared(b)
	for b.Loop() {
		fake := newFakeTest(b)
		boroughtest.Start(fake)
		b.StopTimer()
		fake.end()
		b.StartTimer()
	}
}

// BenchmarkNamespaces creates, deletes and awaits 1,000 Namespaces, as tests do that run in
// parallel.
func BenchmarkNamespaces(b *testing.B) {
	s := boroughtest.Shared(b)
	const namespaces = 1000
	for _, parallel := range []int{1, 8} {
		b.Run(fmt.Sprintf("parallel=%d", parallel), func(b *testing.B) {
			for b.Loop() {
				var tests sync.WaitGroup
				for range parallel {
					tests.Go(func() {
						for range namespaces / parallel {
							fake := newFakeTest(b)
							s.Namespace(fake)
							fake.end()
							for _, err := range fake.errors {
								b.Error(err)
							}
						}
					})
				}
				tests.Wait()
			}
		})
	}
}
