// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package embedded_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	"go.etcd.io/etcd/server/v3/storage/wal"

	"k8s.io/klog/v2"

	"github.com/borough-io/borough/pkg/storage/embedded"
)

// TestReadDuringStall reads while etcd cannot write its log, for longer than etcd lets a
// read wait.
func TestReadDuringStall(t *testing.T) {
	stalled, timedOut, end := make(chan struct{}), make(chan struct{}), make(chan struct{})
	stall := sync.OnceFunc(func() { close(stalled); <-end })
	logger := funcr.New(func(_, entry string) {
		switch {
		case strings.Contains(entry, "created a new WAL segment"): // by the goroutine that writes the log
			stall()
		case strings.Contains(entry, "timed out waiting for read index response"):
			select {
			case <-timedOut:
			default:
				close(timedOut)
			}
		}
	}, funcr.Options{Verbosity: 4})
	server, err := embedded.Start(klog.NewContext(t.Context(), logger), embedded.Config{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Close() })
	client := server.Client()
	put(t, client, "key", "value")

	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	var background sync.WaitGroup
	defer background.Wait()
	defer cancel()
	background.Go(func() {
		for value := strings.Repeat("v", int(wal.SegmentSizeBytes)); ctx.Err() == nil; {
			_, _ = client.Put(ctx, "large", value) // fails while etcd cannot write
		}
	})
	select {
	case <-stalled:
	case <-ctx.Done():
		t.Fatal("etcd has not begun another file of its log")
	}
	background.Go(func() {
		defer close(end)
		select {
		case <-timedOut:
		case <-ctx.Done():
			if errors.Is(ctx.Err(), context.DeadlineExceeded) {
				t.Error("no read has timed out")
			}
		}
	})
	if got := get(t, client, "key"); got != "value" {
		t.Errorf("got %q", got)
	}
}
