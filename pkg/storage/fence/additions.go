// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package fence

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/borough-io/borough/pkg/storage/transaction"
)

var _ transaction.Guards = &Fence{}

// Guard implements transaction.Guards. It returns an error until the store of a
// namespaced resource is open.
func (f *Fence) Guard(ctx context.Context, name string) (*transaction.Guard, error) {
	kv := f.kv.Load()
	if kv == nil {
		return nil, errors.New("read a guard: no store is open")
	}
	// A name can have any characters and any length.
	hash := sha256.Sum256([]byte(name))
	key := f.config.GuardPrefix + hex.EncodeToString(hash[:])
	response, err := (*kv).Get(ctx, key)
	if err != nil {
		return nil, fmt.Errorf("read the guard of %q: %w", name, err)
	}
	guard := &transaction.Guard{Key: key}
	if len(response.Kvs) > 0 {
		guard.Revision = response.Kvs[0].ModRevision
	}
	return guard, nil
}

// addition is what a transaction.Addition adds to the transaction that creates a
// Namespace. The zero value adds nothing.
type addition struct {
	guard   *transaction.Guard
	compare []clientv3.Cmp
	put     []clientv3.Op
	read    []clientv3.Op // if the transaction fails
}

func newAddition(added *transaction.Addition) addition {
	if added == nil {
		return addition{}
	}
	// There is no content without its Namespace, so this always holds.
	a := addition{guard: added.Guard}
	a.add(added.Key, 0, added.Value)
	if guard := added.Guard; guard != nil {
		a.add(guard.Key, guard.Revision, nil)
	}
	return a
}

// add adds a put to a key that is at a revision.
func (a *addition) add(key string, revision int64, value []byte) {
	a.compare = append(a.compare, clientv3.Compare(clientv3.ModRevision(key), "=", revision))
	a.put = append(a.put, clientv3.OpPut(key, string(value)))
	a.read = append(a.read, clientv3.OpGet(key, clientv3.WithKeysOnly()))
}

// check returns an error if one of the comparisons does not hold in what was read.
func (a addition) check(responses []*etcdserverpb.ResponseOp) error {
	for i, response := range responses {
		var revision int64
		if kvs := response.GetResponseRange().Kvs; len(kvs) > 0 {
			revision = kvs[0].ModRevision
		}
		switch {
		case i == 0 && revision != 0:
			return errors.New("there is content in a namespace that does not exist")
		case i == 1 && revision != a.guard.Revision:
			return transaction.ErrGuardChanged
		}
	}
	return nil
}
