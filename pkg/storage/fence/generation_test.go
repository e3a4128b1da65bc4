// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package fence_test

import (
	"context"
	"errors"
	"sync"
	"testing"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/kubernetes"

	"github.com/borough-io/borough/pkg/apis/tenancy"
)

var errUnanswered = errors.New("unanswered")

// unansweredKV does not answer a transaction that writes: it carries it out, or holds it
// back for later.
type unansweredKV struct {
	clientv3.KV
	carryOut bool
	held     clientv3.Txn
}

func (l *unansweredKV) Txn(ctx context.Context) clientv3.Txn {
	return &unansweredTxn{l.KV.Txn(ctx), l, false}
}

type unansweredTxn struct {
	clientv3.Txn
	kv     *unansweredKV
	writes bool
}

func (t *unansweredTxn) If(cmps ...clientv3.Cmp) clientv3.Txn {
	t.Txn = t.Txn.If(cmps...)
	return t
}

func (t *unansweredTxn) Then(ops ...clientv3.Op) clientv3.Txn {
	t.writes = ops[0].IsPut()
	t.Txn = t.Txn.Then(ops...)
	return t
}

func (t *unansweredTxn) Else(ops ...clientv3.Op) clientv3.Txn {
	t.Txn = t.Txn.Else(ops...)
	return t
}

func (t *unansweredTxn) Commit() (*clientv3.TxnResponse, error) {
	switch {
	case !t.writes || t.kv.held != nil:
		return t.Txn.Commit()
	case t.kv.carryOut:
		if _, err := t.Txn.Commit(); err != nil {
			return nil, err
		}
	}
	t.kv.held = t.Txn
	return nil, errUnanswered
}

// TestResolveCreate leaves the first try of a create unanswered, and resolves it
// after others have done something with the object.
func TestResolveCreate(t *testing.T) {
	const namespaceKey, podKey, roleKey = namespacesPrefix + "town", podsPrefix + "town/p", "/registry/clusterroles/r"
	const ours = "ours"
	for name, test := range map[string]struct {
		carryOut      bool
		beforeResolve func(f *fixture, key string)
	}{
		"not carried out":                {false, func(*fixture, string) {}},
		"not carried out, but another":   {false, func(f *fixture, key string) { f.write(key, "another") }},
		"not, and another came and went": {false, func(f *fixture, key string) { f.write(key, "another"); f.remove(key) }},
		"carried out":                    {true, func(*fixture, string) {}},
		"carried out and deleted":        {true, func(f *fixture, key string) { f.remove(key) }},
		"carried out and changed":        {true, func(f *fixture, key string) { f.write(key, "changed") }},
		"carried out and replaced":       {true, func(f *fixture, key string) { f.remove(key); f.write(key, "another") }},
	} {
		for resource, key := range map[string]string{"pods": podKey, "namespaces": namespaceKey, "clusterroles": roleKey} {
			t.Run(name+" "+resource, func(t *testing.T) {
				f := newFixture(t)
				kv := &unansweredKV{KV: f.client.KV, carryOut: test.carryOut}
				client := &kubernetes.Client{Client: f.client.Client}
				client.Kubernetes = client
				client.KV = kv
				t.Cleanup(func() { client.KV = kv.KV })
				store := f.fence.Wrap(tenancy.Resource(resource), client)
				if key != namespaceKey {
					f.write(namespaceKey, active(t))
				}
				since := f.write("/elsewhere", "")
				if _, err := store.OptimisticPut(t.Context(), key, []byte(ours), 0, kubernetes.PutOptions{}); !errors.Is(err, errUnanswered) {
					t.Fatalf("got %v, want %v", err, errUnanswered)
				}
				var want int64
				if test.carryOut {
					got, err := f.client.KV.Get(t.Context(), key)
					if err != nil {
						t.Fatal(err)
					}
					want = got.Kvs[0].ModRevision
				}
				test.beforeResolve(f, key)

				written, until, err := f.fence.ResolveCreate(t.Context(), f.client.Client, key, []byte(ours), since)
				if err != nil || written != want || until <= want {
					t.Errorf("got written at %d, until %d, %v; want written at %d", written, until, err, want)
				}
				if test.carryOut {
					return
				}
				// The member continues with the create that it has held back.
				f.remove(key)
				if response, err := kv.held.Commit(); err != nil || response.Succeeded {
					t.Errorf("the first try was carried out after all: %v, %v", response, err)
				}
				// The next try, and another server with empty caches, create.
				for _, store := range []kubernetes.Interface{store, f.otherServer(resource)} {
					f.remove(key)
					if response, err := store.OptimisticPut(t.Context(), key, []byte(active(t)), 0, kubernetes.PutOptions{}); err != nil || !response.Succeeded {
						t.Errorf("got %v, %v; want success", response, err)
					}
				}
			})
		}
	}
}

// TestResolveCreateAfterCompaction shows that ResolveCreate returns an error if the
// history is compacted, or is not that of the etcd of before.
func TestResolveCreateAfterCompaction(t *testing.T) {
	f := newFixture(t)
	revision := f.write(podsPrefix+"town/p", "ours")
	f.remove(podsPrefix + "town/p")
	if _, err := f.client.Compact(t.Context(), revision+1); err != nil {
		t.Fatal(err)
	}
	if _, _, err := f.fence.ResolveCreate(t.Context(), f.client.Client, podsPrefix+"town/p", []byte("ours"), revision+1000); err == nil {
		t.Error("the outcome was determined with an etcd whose revisions are lower than before")
	}
	if _, _, err := f.fence.ResolveCreate(t.Context(), f.client.Client, podsPrefix+"town/p", []byte("ours"), revision-1); !errors.Is(err, rpctypes.ErrCompacted) {
		t.Errorf("got %v, want %v", err, rpctypes.ErrCompacted)
	}
}

// TestResolveCreateWithOtherWatches requests the progress of other watches of the client
// while creates are resolved. Etcd sends it to all watches of a stream, also to one that has
// not sent its events yet.
func TestResolveCreateWithOtherWatches(t *testing.T) {
	const key = podsPrefix + "town/p"
	f := newFixture(t)
	revision := f.write(key, "ours")
	f.remove(key)
	ctx, cancel := context.WithCancel(clientv3.WithRequireLeader(t.Context()))
	var others sync.WaitGroup
	t.Cleanup(func() {
		cancel()
		others.Wait()
	})
	for range 4 {
		watch := f.client.Watch(ctx, "/elsewhere")
		others.Go(func() {
			for range watch { //nolint:revive // until the context ends
			}
		})
		others.Go(func() {
			for ctx.Err() == nil {
				_ = f.client.RequestProgress(ctx)
			}
		})
	}
	for range 50 {
		written, _, err := f.fence.ResolveCreate(t.Context(), f.client.Client, key, []byte("ours"), revision-1)
		if err != nil || written != revision {
			t.Fatalf("got written at %d, %v; want %d", written, err, revision)
		}
	}
}
