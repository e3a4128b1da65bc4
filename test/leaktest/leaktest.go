// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

// Package leaktest fails the tests of a package if they leave goroutines running.
package leaktest

import (
	"fmt"
	"os"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// endTimeout is how long goroutines may take to end after the tests on a loaded
// machine.
const endTimeout = time.Minute

// Main is the TestMain of a package. It runs the tests and exits.
func Main(m *testing.M) {
	code := m.Run()
	if code == 0 {
		if err := Check(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	os.Exit(code)
}

// Check returns an error with the goroutines that do not end.
func Check() (err error) {
	// A call of goleak.Find waits for less than a second.
	for deadline := time.Now().Add(endTimeout); time.Now().Before(deadline); {
		if err = goleak.Find(libraries...); err == nil {
			break
		}
	}
	return err
}

// libraries ignores goroutines that libraries start and that no caller can end.
var libraries = []goleak.Option{
	// The log is flushed for the lifetime of the process.
	goleak.IgnoreTopFunction("k8s.io/klog/v2.(*flushDaemon).run.func1"),
	// So it is named, for example the health check of the log.
	goleak.IgnoreAnyFunction("k8s.io/apimachinery/pkg/util/wait.Forever"),
	// A server of k8s.io/apiserver that is configured and never run: a context
	// waits for its end.
	goleak.IgnoreTopFunction("context.(*cancelCtx).propagateCancel.func2"),
}
