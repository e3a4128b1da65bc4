// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package fence

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/borough-io/borough/pkg/storage/transaction"
)

var _ transaction.Guards = &Fence{}

// ConditionPrefix returns the prefix of the keys of a resource, or an error if transactions cannot
// have conditions on it.
func (f *Fence) ConditionPrefix(resource schema.GroupResource) (string, error) {
	for _, r := range f.config.Conditional {
		if r.GroupResource == resource {
			return r.Prefix, nil
		}
	}
	return "", fmt.Errorf("transactions cannot have conditions on %s", resource)
}

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
	compare []clientv3.Cmp
	put     []clientv3.Op
	read    []clientv3.Op // if the transaction fails
	// verify has for each read the function that returns an error if the comparison
	// does not hold for the result.
	verify []func(*mvccpb.KeyValue) error
}

var errOrphan = errors.New("there is content in a namespace that does not exist")

func newAddition(added *transaction.Addition) addition {
	var a addition
	if added == nil {
		return a
	}
	for _, object := range added.Objects {
		// There is no content without its Namespace, so this always holds.
		a.requireRevision(object.Key, 0, errOrphan)
		a.put = append(a.put, clientv3.OpPut(object.Key, string(object.Value)))
	}
	for _, guard := range added.Guards {
		a.requireRevision(guard.Key, guard.Revision, transaction.ErrGuardChanged)
		a.put = append(a.put, clientv3.OpPut(guard.Key, ""))
	}
	for _, condition := range added.Conditions {
		// Holds for an empty range.
		a.require(clientv3.Compare(clientv3.ModRevision(condition.Prefix), "<", condition.Revision+1).WithPrefix(),
			clientv3.OpGet(condition.Prefix, clientv3.WithPrefix(), clientv3.WithMinModRev(condition.Revision+1), clientv3.WithLimit(1), clientv3.WithKeysOnly()),
			func(newer *mvccpb.KeyValue) error {
				if newer != nil {
					return transaction.ErrConditionChanged
				}
				return nil
			})
		if condition.Key != "" {
			a.requireRevision(condition.Key, condition.KeyRevision, transaction.ErrConditionChanged)
		}
	}
	return a
}

// requireRevision requires that a key is at a revision, or does not exist if that is 0.
func (a *addition) requireRevision(key string, revision int64, otherwise error) {
	a.require(clientv3.Compare(clientv3.ModRevision(key), "=", revision), clientv3.OpGet(key, clientv3.WithKeysOnly()),
		func(kv *mvccpb.KeyValue) error {
			if kv.GetModRevision() != revision {
				return otherwise
			}
			return nil
		})
}

func (a *addition) require(compare clientv3.Cmp, read clientv3.Op, verify func(*mvccpb.KeyValue) error) {
	a.compare = append(a.compare, compare)
	a.read = append(a.read, read)
	a.verify = append(a.verify, verify)
}

// check returns an error if one of the comparisons does not hold in what was read by
// the operations of the transaction from the first on.
func (a addition) check(response *clientv3.TxnResponse, first int) error {
	for i, verify := range a.verify {
		if err := verify(rangeResult(response, first+i)); err != nil {
			return err
		}
	}
	return nil
}
