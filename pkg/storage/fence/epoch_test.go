// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package fence_test

import (
	"context"
	"errors"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/kubernetes"

	"github.com/borough-io/borough/pkg/apis/tenancy"
	"github.com/borough-io/borough/pkg/storage/fence"
)

var errUnanswered = errors.New("unanswered")

// limbo keeps the transactions that write from being carried out, until they
// are let go.
type limbo struct {
	clientv3.KV
	on   bool
	held []clientv3.Txn
}

func (l *limbo) Txn(ctx context.Context) clientv3.Txn { return &limboTxn{l.KV.Txn(ctx), l, false} }

type limboTxn struct {
	clientv3.Txn
	limbo  *limbo
	writes bool
}

func (t *limboTxn) If(cmps ...clientv3.Cmp) clientv3.Txn {
	t.Txn = t.Txn.If(cmps...)
	return t
}

func (t *limboTxn) Then(ops ...clientv3.Op) clientv3.Txn {
	t.writes = ops[0].IsPut()
	t.Txn = t.Txn.Then(ops...)
	return t
}

func (t *limboTxn) Else(ops ...clientv3.Op) clientv3.Txn {
	t.Txn = t.Txn.Else(ops...)
	return t
}

func (t *limboTxn) Commit() (*clientv3.TxnResponse, error) {
	if !t.limbo.on || !t.writes {
		return t.Txn.Commit()
	}
	t.limbo.held = append(t.limbo.held, t.Txn)
	return nil, errUnanswered
}

// TestEpoch lets a create that was not answered be carried out after the object
// has been created and deleted.
func TestEpoch(t *testing.T) {
	const namespaceKey, podKey = namespacesPrefix + "town", podsPrefix + "town/p"
	for _, test := range []struct{ resource, key, value string }{
		{"pods", podKey, "pod"},
		{"namespaces", namespaceKey, active(t)},
	} {
		for _, ends := range []bool{true, false} {
			f := newFixture(t)
			limbo := &limbo{KV: f.client.KV}
			client := &kubernetes.Client{Client: f.client.Client}
			client.Kubernetes = client
			client.KV = limbo
			t.Cleanup(func() { client.KV = limbo.KV })
			fence, err := fence.New(config())
			if err != nil {
				t.Fatal(err)
			}
			store := fence.Wrap(tenancy.Resource(test.resource), client)
			if test.key != namespaceKey {
				f.write(namespaceKey, active(t))
			}
			create := func() (kubernetes.PutResponse, error) {
				return store.OptimisticPut(t.Context(), test.key, []byte(test.value), 0, kubernetes.PutOptions{})
			}

			limbo.on = true
			if _, err := create(); !errors.Is(err, errUnanswered) {
				t.Fatalf("got %v, want %v", err, errUnanswered)
			}
			limbo.on = false
			if ends {
				if err := fence.EndEpoch(t.Context(), limbo.KV); err != nil {
					t.Fatal(err)
				}
			}
			if response, err := create(); err != nil || !response.Succeeded {
				t.Fatalf("%s: got %+v, %v; want success", test.resource, response, err)
			}
			// Another server has not heard of the new epoch.
			f.remove(test.key)
			other := f.pods
			if test.key == namespaceKey {
				other = f.namespaces
			}
			if response, err := other.OptimisticPut(t.Context(), test.key, []byte(test.value), 0, kubernetes.PutOptions{}); err != nil || !response.Succeeded {
				t.Fatalf("%s by another server: got %+v, %v; want success", test.resource, response, err)
			}
			f.remove(test.key)

			if _, err := limbo.held[0].Commit(); err != nil {
				t.Fatal(err)
			}
			if back := f.exists(test.key); back == ends {
				t.Errorf("%s, the epoch was ended: %t; the object came back: %t", test.resource, ends, back)
			}
		}
	}
}
