// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package etcdlog_test

import (
	"errors"
	"sync/atomic"
	"testing"

	"github.com/go-logr/logr/funcr"
	"github.com/google/go-cmp/cmp"
	"go.uber.org/zap"

	"github.com/borough-io/borough/pkg/storage/internal/etcdlog"
)

func TestLevels(t *testing.T) {
	var got []string
	logger := funcr.New(func(_, args string) { got = append(got, args) }, funcr.Options{Verbosity: 4})
	var quiet atomic.Bool
	log := etcdlog.New(logger, &quiet)
	every := func() {
		log.Debug("debug")
		log.Info("info", zap.Int("n", 1))
		log.With(zap.String("with", "it")).Warn("warning", zap.Error(errors.New("why")))
		log.Error("error", zap.Error(errors.New("why")), zap.Error(nil))
		log.Error("failed to update storage version")
	}
	every()
	quiet.Store(true)
	every()
	want := []string{
		`"level"=4 "msg"="info" "n"=1`,
		`"level"=0 "msg"="warning" "with"="it" "err"="why"`,
		`"msg"="error" "error"="why"`,
		`"level"=4 "msg"="failed to update storage version"`,

		`"level"=4 "msg"="info" "n"=1`,
		`"level"=4 "msg"="warning" "with"="it" "err"="why"`,
		`"level"=4 "msg"="error" "err"="why"`,
		`"level"=4 "msg"="failed to update storage version"`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("log (-want +got):\n%s", diff)
	}
}

func TestPanicIsNotLogged(t *testing.T) {
	var got []string
	log := etcdlog.New(funcr.New(func(_, args string) { got = append(got, args) }, funcr.Options{}), nil)
	defer func() {
		if recover() == nil || len(got) != 0 {
			t.Errorf("it did not panic, or has logged %q", got)
		}
	}()
	log.Panic("panic")
}
