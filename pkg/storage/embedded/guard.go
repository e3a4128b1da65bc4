// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package embedded

import (
	"fmt"
	"runtime"
	"sync/atomic"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"k8s.io/klog/v2"

	"github.com/borough-io/borough/pkg/storage/internal/etcdlog"
)

// guard stands between etcd and the end of the process. etcd meets damaged
// files with a log entry at panic or fatal level, from any of its goroutines.
// While it starts, such an entry becomes the error that Start returns. Once it
// runs, such an entry is logged and ends the process, since a member that cannot
// trust its own files must not go on.
type guard struct {
	logger klog.Logger
	// started says that there is nobody any more who waits for failed.
	started atomic.Bool
	failed  chan error
	// quiet holds back what etcd reports of its start, where the error says all
	// there is to say, and of its end, which is wanted.
	quiet atomic.Bool
}

func newGuard(logger klog.Logger) *guard {
	g := &guard{logger: logger, failed: make(chan error, 1)}
	g.quiet.Store(true)
	return g
}

func (g *guard) zapLogger() *zap.Logger {
	return etcdlog.New(g.logger, &g.quiet, zap.WithPanicHook(g), zap.WithFatalHook(g))
}

// start says that the start is over.
func (g *guard) start() {
	g.started.Store(true)
	g.quiet.Store(false)
}

// end says that the member is about to end.
func (g *guard) end() { g.quiet.Store(true) }

// OnWrite implements zapcore.CheckWriteHook for entries at panic and fatal
// level.
func (g *guard) OnWrite(entry *zapcore.CheckedEntry, fields []zapcore.Field) {
	values, err := etcdlog.Values(fields)
	if g.started.Load() {
		g.logger.Error(err, entry.Message, values...)
		klog.FlushAndExit(klog.ExitFlushTimeout, 1)
	}
	if err == nil {
		err = fmt.Errorf("etcd cannot use its files: %s %v", entry.Message, values)
	} else {
		err = fmt.Errorf("etcd cannot use its files: %s: %w", entry.Message, err)
	}
	g.fail(err)
	// Whatever comes next in this goroutine relies on what has just failed.
	runtime.Goexit()
}

// recover turns a panic of the goroutine that defers it into a failed start.
func (g *guard) recover() {
	if r := recover(); r != nil {
		g.fail(fmt.Errorf("etcd cannot use its files: it panicked: %v", r))
	}
}

func (g *guard) fail(err error) {
	select {
	case g.failed <- err:
	default: // the first failure is the cause
	}
}
