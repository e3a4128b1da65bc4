// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

// Package etcdlog writes the logs of etcd's server and client to klog.
package etcdlog

import (
	"sync/atomic"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"k8s.io/klog/v2"
)

// etcd logs at info level what klog's conventions assign to debugging levels.
const (
	infoVerbosity  = 4
	debugVerbosity = 6
)

// harmless are the errors that every new member logs once: it reads its storage
// version before the first term is written to the database, and retries later.
var harmless = map[string]bool{
	"Failed to detect schema version":  true,
	"failed to update storage version": true,
}

// Of entries with the same level and message, the first are logged in each period and then
// one of so many: etcd logs each request that is slow, and clients can send many.
const (
	period = 10 * time.Second
	first  = 10
	oneOf  = 100
)

// New returns a zap logger that writes to logger. Errors and warnings are logged unless
// they repeat very often, info at verbosity 4 and debug at verbosity 6. While quiet is
// true, warnings and errors are logged like info; nil means never.
//
// Entries at panic and fatal level are not logged here. The hooks among the options
// (zap.WithPanicHook, zap.WithFatalHook) handle them. Without a hook they panic and
// exit, as in zap.
func New(logger klog.Logger, quiet *atomic.Bool, options ...zap.Option) *zap.Logger {
	if quiet == nil {
		quiet = new(atomic.Bool)
	}
	limited := zapcore.NewSamplerWithOptions(&core{logger: logger, quiet: quiet}, period, first, oneOf)
	return zap.New(limited, options...)
}

// Values converts zap's fields to the alternating keys and values of klog. The
// first error among them is returned separately.
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
