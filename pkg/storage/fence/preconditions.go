// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package fence

import (
	"context"
	"errors"
	"fmt"
	"slices"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/borough-io/borough/pkg/storage/charge"
	"github.com/borough-io/borough/pkg/storage/precondition"
	"github.com/borough-io/borough/pkg/storage/stored"
)

// maxPreconditions is the maximum number of comparisons for preconditions in a
// transaction. etcd allows 128 in total (--max-txn-ops): the write needs up to 3, its
// charge one for each quota and one for all. Preconditions that need more are checked
// before the transaction.
const maxPreconditions = 128 - 3 - (charge.MaxQuotas + 1)

var _ precondition.Checker = &Fence{}

// Check implements precondition.Checker. It returns an error until the store of
// a namespaced resource is open.
func (f *Fence) Check(ctx context.Context, objects precondition.Objects) (staleAt int64, err error) {
	prefix, err := f.preconditionPrefix(objects)
	if err != nil {
		return 0, err
	}
	kv := f.kv.Load()
	if kv == nil {
		return 0, errors.New("check preconditions: no store is open")
	}
	response, err := (*kv).Get(ctx, prefix, clientv3.WithPrefix(), clientv3.WithKeysOnly())
	if err != nil {
		return 0, fmt.Errorf("check whether the %s of namespace %s have changed: %w", objects.Resource, objects.Namespace, err)
	}
	if len(response.Kvs) != len(objects.Versions) {
		return response.Header.Revision, nil
	}
	for i, version := range objects.Versions { // both are sorted by name
		if kv := response.Kvs[i]; string(kv.Key) != prefix+version.Name || kv.ModRevision != version.Revision {
			return response.Header.Revision, nil
		}
	}
	return 0, nil
}

// preconditions returns the comparisons for the preconditions of the attempt in
// the context. Preconditions with too many comparisons are checked here instead: a
// change between this check and the write is missed, but no change from before the
// request.
func (f *Fence) preconditions(ctx context.Context) ([]clientv3.Cmp, error) {
	attempt := precondition.From(ctx)
	var compares []clientv3.Cmp
	for _, objects := range attempt.Try() {
		if len(compares)+max(1, len(objects.Versions)) <= maxPreconditions {
			prefix, err := f.preconditionPrefix(objects)
			if err != nil {
				return nil, err
			}
			compares = append(compares, unchanged(prefix, objects.Versions)...)
			continue
		}
		staleAt, err := f.Check(ctx, objects)
		if err != nil {
			return nil, err
		}
		if staleAt != 0 {
			return nil, attempt.Fail(staleAt)
		}
	}
	return compares, nil
}

// unchanged returns comparisons that hold if the keys with the prefix are exactly
// those of the objects, at their revisions. There is one range for each object. It
// starts at the object's key, and all keys in it must have the object's revision.
// One revision writes at most one of these keys, so a range has no other keys, and
// it is not empty, because a key that does not exist has the revision 0.
func unchanged(prefix string, versions []precondition.Version) []clientv3.Cmp {
	end := clientv3.GetPrefixRangeEnd(prefix)
	if len(versions) == 0 {
		return []clientv3.Cmp{clientv3.Compare(clientv3.ModRevision(prefix), "=", 0).WithRange(end)}
	}
	compares := make([]clientv3.Cmp, len(versions))
	for i, version := range versions {
		from, to := prefix, end
		if i > 0 {
			from = prefix + version.Name
		}
		if i+1 < len(versions) {
			to = prefix + versions[i+1].Name
		}
		compares[i] = clientv3.Compare(clientv3.ModRevision(from), "=", version.Revision).WithRange(to)
	}
	return compares
}

// preconditionPrefix returns the prefix of the keys of the objects.
func (f *Fence) preconditionPrefix(objects precondition.Objects) (string, error) {
	i := slices.IndexFunc(f.config.Namespaced, func(r stored.Resource) bool { return r.GroupResource == objects.Resource })
	if i < 0 || objects.Namespace == "" {
		return "", fmt.Errorf("%s in namespace %q cannot be a precondition: it is not a namespaced resource of the fence", objects.Resource, objects.Namespace)
	}
	return f.config.Namespaced[i].In(objects.Namespace), nil
}
