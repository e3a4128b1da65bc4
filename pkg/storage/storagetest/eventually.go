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

// pollTimeout is the time that a state may take to be reached on a loaded machine.
const pollTimeout = 30 * time.Second

// Eventually calls try until it returns no error. It fails the test with the last
// error after a timeout.
func Eventually(t testing.TB, try func() error) {
	t.Helper()
	if err := eventually(try); err != nil {
		t.Fatal(err)
	}
}

func eventually(try func() error) error {
	last := errors.New("never tried")
	err := wait.PollUntilContextTimeout(context.Background(), time.Millisecond, pollTimeout, true, func(context.Context) (bool, error) {
		last = try()
		return last == nil, nil
	})
	if err != nil {
		return fmt.Errorf("after %v: %w", pollTimeout, last)
	}
	return nil
}

// Main runs the tests and exits. It also exits with an error if the tests leave
// goroutines running.
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
					return fmt.Errorf("a goroutine is still running:\n%s", stack)
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

// lasting reports whether a library starts the goroutine once for the lifetime of
// the process.
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

// goroutines returns one stack for each place in the code that has started
// goroutines.
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
