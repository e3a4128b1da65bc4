// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

// Package etcdlog carries what etcd's server and client log to klog.
package etcdlog

import (
	"sync/atomic"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"k8s.io/klog/v2"
)

// etcd reports at info level what klog's conventions put at the levels for
// debugging.
const (
	infoVerbosity  = 4
	debugVerbosity = 6
)

// harmless are the errors that a new member always logs once: it looks for its
// storage version before the first term has reached the database, and tries
// again later.
var harmless = map[string]bool{
	"Failed to detect schema version":  true,
	"failed to update storage version": true,
}

// New returns a zap logger that writes to logger. Errors and warnings are always
// logged, all else as verbose information (4 for info, 6 for debug). While quiet
// holds true, warnings and errors count as info; nil stands for never.
//
// Entries at panic and fatal level are not logged here: what they end, and who
// reports it, is decided by the hooks among the options (zap.WithPanicHook,
// zap.WithFatalHook). Without a hook they panic and exit, as in zap.
func New(logger klog.Logger, quiet *atomic.Bool, options ...zap.Option) *zap.Logger {
	if quiet == nil {
		quiet = new(atomic.Bool)
	}
	return zap.New(&core{logger: logger, quiet: quiet}, options...)
}

// Values turns zap's fields into the alternating keys and values that klog
// takes. The first error among them is returned on its own.
func Values(fields []zapcore.Field) (values []any, err error) {
	for _, f := range fields {
		if f.Type == zapcore.SkipType {
			continue
		}
		if f.Type == zapcore.ErrorType && err == nil {
			err, _ = f.Interface.(error)
			continue
		}
		object := zapcore.NewMapObjectEncoder()
		f.AddTo(object)
		values = append(values, f.Key, object.Fields[f.Key])
	}
	return values, err
}

// core implements zapcore.Core.
type core struct {
	logger klog.Logger
	quiet  *atomic.Bool
	fields []zapcore.Field
}

func (c *core) Enabled(level zapcore.Level) bool {
	return level <= zapcore.ErrorLevel && c.logger.V(c.verbosity(level)).Enabled()
}

func (c *core) With(fields []zapcore.Field) zapcore.Core {
	with := *c
	with.fields = c.and(fields)
	return &with
}

func (c *core) Check(entry zapcore.Entry, checked *zapcore.CheckedEntry) *zapcore.CheckedEntry {
	if harmless[entry.Message] {
		entry.Level = zapcore.InfoLevel
	}
	if c.Enabled(entry.Level) {
		return checked.AddCore(entry, c)
	}
	return checked
}

func (c *core) Write(entry zapcore.Entry, fields []zapcore.Field) error {
	values, err := Values(c.and(fields))
	verbosity := c.verbosity(entry.Level)
	if entry.Level == zapcore.ErrorLevel && verbosity == 0 {
		c.logger.Error(err, entry.Message, values...)
		return nil
	}
	if err != nil {
		values = append(values, "err", err)
	}
	c.logger.V(verbosity).Info(entry.Message, values...)
	return nil
}

func (c *core) Sync() error { return nil }

func (c *core) and(fields []zapcore.Field) []zapcore.Field {
	return append(c.fields[:len(c.fields):len(c.fields)], fields...)
}

func (c *core) verbosity(level zapcore.Level) int {
	switch {
	case level <= zapcore.DebugLevel:
		return debugVerbosity
	case level == zapcore.InfoLevel || c.quiet.Load():
		return infoVerbosity
	default:
		return 0
	}
}
