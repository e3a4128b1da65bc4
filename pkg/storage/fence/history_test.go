// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package fence_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/borough-io/borough/pkg/storage/fence"
	"github.com/borough-io/borough/pkg/storage/internal/unanswered"
)

// TestResolveUpdate resolves an update after others have changed the object.
func TestResolveUpdate(t *testing.T) {
	const key = podsPrefix + "town/p"
	f := newFixture(t)
	for name, test := range map[string]struct {
		carriedOut bool
		after      func()
	}{
		"carried out and changed":          {true, func() { f.write(key, "another") }},
		"carried out and deleted":          {true, func() { f.remove(key) }},
		"carried out, changed often":       {true, func() { f.write(key, "another"); f.write(key, "ours"); f.write(key, "yet another") }},
		"not carried out, but another":     {false, func() { f.write(key, "another") }},
		"not carried out, and deleted":     {false, func() { f.remove(key) }},
		"not carried out, and later alike": {false, func() { f.write(key, "another"); f.write(key, "ours") }},
	} {
		t.Run(name, func(t *testing.T) {
			since, want := f.write(key, "before"), int64(0)
			f.write("/elsewhere", "")
			if test.carriedOut {
				want = f.write(key, "ours")
			}
			test.after()
			until := f.write("/elsewhere", "")
			written, err := fence.ResolveUpdate(t.Context(), f.client.Client, key, []byte("ours"), since, until)
			if err != nil || written != want {
				t.Errorf("got written at %d, %v; want %d", written, err, want)
			}
		})
	}
	since, until := f.write(key, "before"), f.write(key, "another")
	if _, err := f.client.Compact(t.Context(), until); err != nil {
		t.Fatal(err)
	}
	if _, err := fence.ResolveUpdate(t.Context(), f.client.Client, key, []byte("ours"), since-1, until); !errors.Is(err, rpctypes.ErrCompacted) {
		t.Errorf("after a compaction: got %v", err)
	}
}

// TestResolveFull determines the outcome of writes from what is stored after them.
func TestResolveFull(t *testing.T) {
	const key = podsPrefix + "town/p"
	f := newFixture(t)
	const create, update, remove = "create", "update", "delete"
	nothing := func() {}
	ours := func() { f.write(key, "ours") }
	another := func() { f.write(key, "another") }
	gone := func() { f.remove(key) }
	for name, test := range map[string]struct {
		write      string
		carriedOut bool
		after      func()
	}{
		"created":                       {create, true, nothing},
		"created and changed":           {create, true, another},
		"created and deleted":           {create, true, gone},
		"not created":                   {create, false, nothing},
		"created by another":            {create, false, another},
		"created by another, and alike": {create, false, func() { another(); ours() }},
		"updated":                       {update, true, nothing},
		"updated and deleted":           {update, true, gone},
		"not updated":                   {update, false, nothing},
		"updated by another":            {update, false, another},
		"deleted before the update":     {update, false, gone},
		"updated by another, and alike": {update, false, func() { another(); ours() }},
		"deleted":                       {remove, true, nothing},
		"deleted and created again":     {remove, true, another},
		"not deleted":                   {remove, false, nothing},
		"not deleted, but changed":      {remove, false, another},
	} {
		t.Run(name, func(t *testing.T) {
			f.remove(key)
			since, expected, value := f.write("/elsewhere", ""), int64(0), []byte("ours")
			if test.write != create {
				expected = f.write(key, "before")
				since = expected
			}
			want := int64(0)
			switch {
			case test.write == remove:
				value = nil
				if test.carriedOut {
					gone()
				}
			case test.carriedOut:
				want = f.write(key, "ours")
			}
			test.after()
			for _, later := range []bool{false, true} {
				if later {
					f.write("/elsewhere", "")
				}
				written, err := fence.ResolveFull(t.Context(), f.client.Client, key, value, expected, since)
				if err != nil || (written != 0) != test.carriedOut || want != 0 && written != want {
					t.Errorf("got written at %d, %v; want %d", written, err, want)
				}
			}
		})
	}
}

// behind is a member that is behind: it reports progress before it sends the event.
type behind struct {
	clientv3.Watcher
	responses []clientv3.WatchResponse
}

// Open implements etcdwatch.Opener.
func (b behind) Open() clientv3.Watcher { return b }

// Close closes nothing.
func (b behind) Close() error { return nil }

// RequestProgress has no effect.
func (b behind) RequestProgress(context.Context) error { return nil }

func (b behind) Watch(context.Context, string, ...clientv3.OpOption) clientv3.WatchChan {
	responses := make(chan clientv3.WatchResponse, len(b.responses))
	for _, response := range b.responses {
		responses <- response
	}
	return responses
}

// TestResolveOnAMemberBehind checks that progress to a revision before the last one to read is
// not the end of the history.
func TestResolveOnAMemberBehind(t *testing.T) {
	client := clientv3.NewCtxClient(t.Context())
	client.Watcher = behind{responses: []clientv3.WatchResponse{
		{Header: &etcdserverpb.ResponseHeader{Revision: 5}},
		{Header: &etcdserverpb.ResponseHeader{Revision: 7}, Events: []*clientv3.Event{{Kv: &mvccpb.KeyValue{ModRevision: 7, Value: []byte("ours")}}}},
	}}
	if written, err := fence.ResolveUpdate(t.Context(), client, "/key", []byte("ours"), 4, 8); err != nil || written != 7 {
		t.Errorf("got written at %d, %v; want 7", written, err)
	}
}

// TestResolveOnAMemberThatHangs checks that a member that sends nothing is not waited for as long
// as a request is retried: the error is one after which another member can be asked.
func TestResolveOnAMemberThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := clientv3.NewCtxClient(t.Context())
		client.Watcher = behind{}
		began := time.Now()
		_, err := fence.ResolveUpdate(t.Context(), client, "/key", []byte("ours"), 4, 8)
		if !errors.Is(err, rpctypes.ErrTimeout) || !unanswered.Is(err) || time.Since(began) > unanswered.Timeout/4 {
			t.Errorf("got %v after %s, want %v", err, time.Since(began), rpctypes.ErrTimeout)
		}
	})
}
