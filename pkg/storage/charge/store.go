// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package charge

import (
	"context"
	"path"
	"slices"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/storage"

	"github.com/borough-io/borough/pkg/quota"
	"github.com/borough-io/borough/pkg/storage/stored"
)

type changeKey struct{}

// changeOf returns the change of the write with the context, or nil if it need not be
// charged.
func changeOf(ctx context.Context) *quota.Change {
	change, _ := ctx.Value(changeKey{}).(*quota.Change)
	return change
}

// Exempt returns a context for deletes that are not charged: of objects in a Namespace
// that is being deleted, whose quotas no longer matter.
func Exempt(ctx context.Context) context.Context {
	return context.WithValue(ctx, exemptKey{}, true)
}

type exemptKey struct{}

// StatusOnly returns a context for updates that change only the status of an object.
func StatusOnly(ctx context.Context) context.Context {
	return context.WithValue(ctx, statusOnlyKey{}, true)
}

type statusOnlyKey struct{}

// store is the store of one resource. It puts the change of each write into the
// context for the client of the store.
type store struct {
	storage.Interface
	resource schema.GroupResource
}

// NewStore returns a store whose writes are charged, if the resource is namespaced and
// quotas can count it.
func (c *Charger) NewStore(s storage.Interface, resource schema.GroupResource) storage.Interface {
	if !slices.ContainsFunc(c.content, func(r stored.Resource) bool { return r.GroupResource == resource }) || len(quota.Count(resource)) == 0 {
		return s
	}
	if resource == c.quotas.GroupResource {
		s = quotaStore{s, c}
	}
	return store{s, resource}
}

// Create creates an object.
func (s store) Create(ctx context.Context, key string, obj, out runtime.Object, ttl uint64) error {
	change := &quota.Change{Resource: s.resource, New: quota.Of(s.resource, obj)}
	return s.Interface.Create(context.WithValue(ctx, changeKey{}, change), key, obj, out, ttl)
}

// GuaranteedUpdate updates an object, or creates it.
func (s store) GuaranteedUpdate(ctx context.Context, key string, destination runtime.Object, ignoreNotFound bool,
	preconditions *storage.Preconditions, tryUpdate storage.UpdateFunc, cachedExistingObject runtime.Object) error {
	statusOnly, _ := ctx.Value(statusOnlyKey{}).(bool)
	change := &quota.Change{Resource: s.resource, StatusOnly: statusOnly}
	try := func(input runtime.Object, meta storage.ResponseMeta) (runtime.Object, *uint64, error) {
		change.Old = nil
		if meta.ResourceVersion != 0 {
			// Before tryUpdate changes the object.
			change.Old = quota.Of(s.resource, input)
		}
		obj, ttl, err := tryUpdate(input, meta)
		if err == nil {
			change.New = quota.Of(s.resource, obj)
		}
		return obj, ttl, err
	}
	return s.Interface.GuaranteedUpdate(context.WithValue(ctx, changeKey{}, change), key, destination, ignoreNotFound, preconditions, try, cachedExistingObject)
}

// Delete deletes an object.
func (s store) Delete(ctx context.Context, key string, out runtime.Object, preconditions *storage.Preconditions,
	validateDeletion storage.ValidateObjectFunc, cachedExistingObject runtime.Object, opts storage.DeleteOptions) error {
	if exempt, _ := ctx.Value(exemptKey{}).(bool); exempt {
		return s.Interface.Delete(ctx, key, out, preconditions, validateDeletion, cachedExistingObject, opts)
	}
	change := &quota.Change{Resource: s.resource, Unknown: opts.ExpectTransformOrDecodeError}
	validate := func(ctx context.Context, obj runtime.Object) error {
		if !change.Unknown { // otherwise the object is empty
			change.Old = quota.Of(s.resource, obj)
		}
		return validateDeletion(ctx, obj)
	}
	return s.Interface.Delete(context.WithValue(ctx, changeKey{}, change), key, out, preconditions, validate, cachedExistingObject, opts)
}

// quotaStore is the store of the quotas. The transaction of an update or a delete takes the
// turn, or the charges of a busy Namespace would make it conflict for a long time. What comes
// before it, which includes admission and its webhooks, does so only when it is repeated
// because of a conflict.
type quotaStore struct {
	storage.Interface
	charger *Charger
}

// GuaranteedUpdate updates a quota.
func (s quotaStore) GuaranteedUpdate(ctx context.Context, key string, destination runtime.Object, ignoreNotFound bool,
	preconditions *storage.Preconditions, tryUpdate storage.UpdateFunc, cachedExistingObject runtime.Object) error {
	ctx, turn := s.withExclusiveTurn(ctx, key)
	defer turn.pass()
	try := func(input runtime.Object, meta storage.ResponseMeta) (runtime.Object, *uint64, error) {
		obj, ttl, err := tryUpdate(input, meta)
		if err == nil {
			err = turn.take(ctx)
		}
		return obj, ttl, err
	}
	return s.Interface.GuaranteedUpdate(ctx, key, destination, ignoreNotFound, preconditions, try, cachedExistingObject)
}

// Delete deletes a quota.
func (s quotaStore) Delete(ctx context.Context, key string, out runtime.Object, preconditions *storage.Preconditions,
	validateDeletion storage.ValidateObjectFunc, cachedExistingObject runtime.Object, opts storage.DeleteOptions) error {
	ctx, turn := s.withExclusiveTurn(ctx, key)
	defer turn.pass()
	validate := func(ctx context.Context, obj runtime.Object) error {
		if err := validateDeletion(ctx, obj); err != nil {
			return err
		}
		return turn.take(ctx)
	}
	return s.Interface.Delete(ctx, key, out, preconditions, validate, cachedExistingObject, opts)
}

// withExclusiveTurn returns an exclusive turn of the Namespace of a key, and the context for the writes in it.
func (s quotaStore) withExclusiveTurn(ctx context.Context, key string) (context.Context, *exclusiveTurn) {
	return withExclusiveTurn(ctx, s.charger.namespace(path.Base(path.Dir(key))))
}
