// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package await_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr/funcr"
	"k8s.io/klog/v2"

	"github.com/borough-io/borough/pkg/await"
)

// TestAwait waits for a minute. The log has few lines, but the check has the error of
// the last attempt.
func TestAwait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var lines []string
		ctx := klog.NewContext(t.Context(), funcr.New(func(_, args string) { lines = append(lines, args) }, funcr.Options{}))
		c := await.NewCondition("tea")
		began := time.Now()
		met := c.Await(ctx, func(context.Context) error {
			if err := c.Check(); err == nil {
				t.Error("met before the first success")
			}
			switch waited := time.Since(began); {
			case waited < 20*time.Second:
				return errors.New("no water")
			case waited < time.Minute:
				return errors.New("no leaves")
			}
			return nil
		})
		if !met || c.Check() != nil {
			t.Errorf("met: %t, %v", met, c.Check())
		}
		want := []string{`"Waiting for tea" "err"="no water"`, `"Waiting for tea" "err"="no leaves"`, `"Waited for tea"`}
		if len(lines) != len(want) {
			t.Fatalf("got the lines %q", lines)
		}
		for i := range want {
			if !strings.Contains(lines[i], want[i]) {
				t.Errorf("got %q, want %q", lines[i], want[i])
			}
		}
	})
}

func TestAwaitEnds(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	c := await.NewCondition("tea")
	tries := 0
	if c.Await(ctx, func(context.Context) error { tries++; cancel(); return errors.New("no water") }) || tries != 1 {
		t.Errorf("met, after %d attempts", tries)
	}
	if c.Check() == nil {
		t.Error("met")
	}
}

// TestNoWait logs nothing if the condition is met at once.
func TestNoWait(t *testing.T) {
	ctx := klog.NewContext(t.Context(), funcr.New(func(_, args string) { t.Error(args) }, funcr.Options{}))
	if !await.NewCondition("tea").Await(ctx, func(context.Context) error { return nil }) {
		t.Error("not met")
	}
}

// TestMeet meets a condition that every attempt fails.
func TestMeet(t *testing.T) {
	c := await.NewCondition("nothing")
	met := c.Await(t.Context(), func(context.Context) error {
		c.Meet()
		return errors.New("failed")
	})
	if err := c.Check(); !met || err != nil {
		t.Errorf("met is %t, error %v", met, err)
	}
}
