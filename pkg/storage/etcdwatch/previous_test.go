// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package etcdwatch

import (
	"context"
	"errors"
	"testing"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/borough-io/borough/pkg/storage/embedded/embeddedtest"
)

// forgetful is a watcher that does not ask for previous values.
type forgetful struct{ clientv3.Watcher }

func (w forgetful) Watch(ctx context.Context, key string, opts ...clientv3.OpOption) clientv3.WatchChan {
	return w.Watcher.Watch(ctx, key, clientv3.WithRev(clientv3.OpGet(key, opts...).Rev()))
}

// TestPreviousValues watches a key from each of its revisions, without and with compaction.
func TestPreviousValues(t *testing.T) {
	client := embeddedtest.Start(t).Client()
	var revisions []int64
	for _, value := range []string{"1", "2", "3"} {
		response, err := client.Put(t.Context(), "key", value)
		if err != nil {
			t.Fatal(err)
		}
		revisions = append(revisions, response.Header.Revision)
	}
	if _, err := client.Delete(t.Context(), "key"); err != nil {
		t.Fatal(err)
	}
	watch := func(t *testing.T, revision int64) clientv3.WatchResponse {
		watcher := previousWatcher{forgetful{client}, client}
		ctx := WithFlow(t.Context(), NewFlow(func(string) {}))
		return <-watcher.Watch(ctx, "key", clientv3.WithRev(revision), clientv3.WithPrevKV())
	}
	for i, revision := range revisions {
		response := watch(t, revision)
		previous := []string{"", "1", "2", "3"}[i:]
		if err := response.Err(); err != nil || len(response.Events) != len(previous) {
			t.Fatalf("from revision %d: %d events, %v; want %d", revision, len(response.Events), err, len(previous))
		}
		for j, event := range response.Events {
			if got := string(event.PrevKv.GetValue()); got != previous[j] {
				t.Errorf("event %d from revision %d has the previous value %q, want %q", j, revision, got, previous[j])
			}
		}
	}
	// A watch cache has the objects.
	watched := 0
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	for response := range (previousWatcher{client, nil}).Watch(ctx, "k", clientv3.WithRev(revisions[0]), clientv3.WithPrefix(), clientv3.WithPrevKV()) {
		for _, event := range response.Events {
			watched++
			if value := event.PrevKv.GetValue(); IsOmitted(value) == event.IsCreate() {
				t.Errorf("the %v at revision %d for a watch cache has the previous value %q", event.Type, event.Kv.ModRevision, value)
			}
		}
		if watched == len(revisions)+1 { // the deletion
			break
		}
	}
	if watched != len(revisions)+1 {
		t.Errorf("got %d events for a watch cache, want %d", watched, len(revisions)+1)
	}
	// The watch can begin here, but the value before is gone.
	if _, err := client.Compact(t.Context(), revisions[1]); err != nil {
		t.Fatal(err)
	}
	response := watch(t, revisions[1])
	if err := response.Err(); !errors.Is(err, rpctypes.ErrCompacted) {
		t.Errorf("after a compaction: %v, want %v", err, rpctypes.ErrCompacted)
	}
	if response = watch(t, revisions[2]); response.Err() != nil || string(response.Events[0].PrevKv.GetValue()) != "2" {
		t.Errorf("after the compacted revision: %v", response)
	}
}
