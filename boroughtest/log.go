// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package boroughtest

import (
	"flag"
	"io"
	"os"
	"sync"
	"testing"

	"k8s.io/klog/v2"
)

// maxHeldLog is how much is held back of what klog writes.
const maxHeldLog = 256 << 10

// heldLog holds back what klog writes, and keeps the end of it for tests that fail. The
// log of klog is that of the process: libraries write to it without a context, so the
// lines of several servers, and those of the test, cannot be separated.
type heldLog struct {
	mu    sync.Mutex
	lines []byte
}

var held heldLog

// holdLog begins to hold back what klog writes to the standard error, unless go test is
// verbose. If klog has been configured to write elsewhere, it still does. It does not
// end with a server, because the last goroutines of a server end later.
var holdLog = sync.OnceFunc(func() {
	var flags flag.FlagSet // only gives access to the settings of klog
	klog.InitFlags(&flags)
	if testing.Verbose() || flags.Lookup("logtostderr").Value.String() != "true" {
		return
	}
	// A line of a higher severity is also written as INFO.
	klog.SetOutput(io.Discard)
	klog.SetOutputBySeverity("INFO", &held)
	_ = flags.Set("stderrthreshold", "FATAL") // a severity that klog knows
	klog.LogToStderr(false)
	exit := klog.OsExit
	klog.OsExit = func(code int) { // as when a server cannot write to its disk
		_, _ = os.Stderr.Write(held.take())
		exit(code)
	}
})

// Write implements io.Writer.
func (l *heldLog) Write(line []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.lines) > 2*maxHeldLog {
		l.lines = append(l.lines[:0], l.lines[len(l.lines)-maxHeldLog:]...)
	}
	l.lines = append(l.lines, line...)
	return len(line), nil
}

// take returns what was held back since the last call.
func (l *heldLog) take() []byte {
	l.mu.Lock()
	defer l.mu.Unlock()
	lines := l.lines
	l.lines = nil
	return lines
}

// logIfFailed logs what was held back, and not logged before, if the test has failed.
func logIfFailed(t testing.TB) {
	t.Helper()
	if !t.Failed() {
		return
	}
	if lines := held.take(); len(lines) > 0 {
		t.Logf("The end of the log of Borough:\n%s", lines)
	}
}
