// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package storagetest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

// patience is how long a state that must come may take on a machine under load.
const patience = 30 * time.Second

// Eventually tries until there is no error. It fails the test with the last one
// when that takes too long.
func Eventually(t testing.TB, try func() error) {
	t.Helper()
	if err := eventually(try); err != nil {
		t.Fatal(err)
	}
}

func eventually(try func() error) error {
	last := errors.New("never tried")
	err := wait.PollUntilContextTimeout(context.Background(), time.Millisecond, patience, true, func(context.Context) (bool, error) {
		last = try()
		return last == nil, nil
	})
	if err != nil {
		return fmt.Errorf("after %v: %w", patience, last)
	}
	return nil
}

// Main runs the tests and exits, with an error also if they leave goroutines
// behind.
func Main(m *testing.M) {
	before := map[string]bool{}
	for origin := range goroutines() {
		before[origin] = true
	}
	code := m.Run()
	if code == 0 {
		err := eventually(func() error {
			for origin, stack := range goroutines() {
				if !before[origin] && !lasting(origin) {
					return fmt.Errorf("a goroutine is left over:\n%s", stack)
				}
			}
			return nil
		})
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	os.Exit(code)
}

// lasting says whether a goroutine is one that the libraries start once for the
// life of the process.
func lasting(origin string) bool {
	for _, part := range []string{
		"k8s.io/klog/v2.",
		"k8s.io/apiserver/pkg/storage/etcd3/metrics.",
		"testing.",
		"os/signal.", // go test -fuzz
		// It waits for the end of a server that is configured and never run.
		"context.(*cancelCtx).propagateCancel",
	} {
		if strings.Contains(origin, part) {
			return true
		}
	}
	return false
}

// goroutines returns a stack for each place that has started one.
func goroutines() map[string]string {
	buffer := make([]byte, 1<<20)
	for {
		n := runtime.Stack(buffer, true)
		if n < len(buffer) {
			buffer = buffer[:n]
			break
		}
		buffer = make([]byte, 2*len(buffer))
	}
	byOrigin := map[string]string{}
	for stack := range strings.SplitSeq(string(buffer), "\n\n") {
		if _, origin, ok := strings.Cut(stack, "created by "); ok {
			origin, _, _ = strings.Cut(origin, " in goroutine")
			byOrigin[origin] = stack
		}
	}
	return byOrigin
}
