// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package embedded

import (
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"k8s.io/klog/v2"

	"github.com/borough-io/borough/pkg/storage/internal/etcdlog"
)

// fatalHook handles the log entries of etcd at panic and fatal level, which etcd
// writes from any of its goroutines when its files are damaged. While etcd starts,
// such an entry becomes the error that Start returns. After that, such an entry is
// logged and ends the process, since a member whose files are damaged must not
// continue.
type fatalHook struct {
	logger klog.Logger
	failed chan error
	// started is true when Start no longer receives from failed. The lock is held while an
	// error is sent.
	mu      sync.Mutex
	started bool
	// quiet lowers the level of warnings and errors while etcd starts, when the
	// returned error is sufficient, and while it stops, when they are expected.
	quiet atomic.Bool
}

func newFatalHook(logger klog.Logger) *fatalHook {
	h := &fatalHook{logger: logger, failed: make(chan error, 1)}
	h.quiet.Store(true)
	return h
}

func (h *fatalHook) zapLogger() *zap.Logger {
	return etcdlog.New(h.logger, &h.quiet, zap.WithPanicHook(h), zap.WithFatalHook(h))
}

// setStarted records that the member has started. It returns an error that Start has not
// received.
func (h *fatalHook) setStarted() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	select {
	case err := <-h.failed:
		return err
	default:
	}
	h.started = true
	h.quiet.Store(false)
	return nil
}

// setStopping records that the member is about to stop.
func (h *fatalHook) setStopping() { h.quiet.Store(true) }

// OnWrite implements zapcore.CheckWriteHook for entries at panic and fatal
// level.
func (h *fatalHook) OnWrite(entry *zapcore.CheckedEntry, fields []zapcore.Field) {
	values, err := etcdlog.Values(fields)
	failure := fmt.Errorf("etcd cannot use its files: %s %v", entry.Message, values)
	if err != nil {
		failure = fmt.Errorf("etcd cannot use its files: %s: %w", entry.Message, err)
	}
	if !h.fail(failure) {
		h.logger.Error(err, entry.Message, values...)
		klog.FlushAndExit(klog.ExitFlushTimeout, 1)
	}
	// The code after the log entry relies on what has just failed.
	runtime.Goexit()
}

// recover converts a panic of the goroutine that defers it to a failed start.
func (h *fatalHook) recover() {
	if r := recover(); r != nil {
		h.fail(fmt.Errorf("etcd cannot use its files: it panicked: %v", r))
	}
}

// fail has Start return an error. It returns false if the member has started.
func (h *fatalHook) fail(err error) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.started {
		return false
	}
	select {
	case h.failed <- err:
	default: // only the first failure is reported
	}
	return true
}
