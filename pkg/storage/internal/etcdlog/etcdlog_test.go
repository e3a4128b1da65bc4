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

// TestRepeatedEntries checks that entries that repeat very often are logged less often, and
// others always.
func TestRepeatedEntries(t *testing.T) {
	lines := map[string]int{}
	log := etcdlog.New(funcr.New(func(_, args string) { lines[args]++ }, funcr.Options{}), nil)
	const repeated = 1000
	for i := range repeated {
		log.Warn("apply request took too long")
		if i == repeated/2 {
			log.Warn("another warning")
		}
	}
	if n := lines[`"level"=0 "msg"="another warning"`]; n != 1 {
		t.Errorf("the other warning was logged %d times", n)
	}
	// The test can begin in one period and end in another.
	if n := lines[`"level"=0 "msg"="apply request took too long"`]; n < 10 || n > 50 {
		t.Errorf("the warning that repeats was logged %d times", n)
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
