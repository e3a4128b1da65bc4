// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package storage

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/storage"

	tenancyerrors "github.com/borough-io/borough/pkg/apis/tenancy/errors"
)

// interpretedStore returns API errors for requests that cannot succeed. The library
// converts most errors of a store to API errors, but not those in interpret, for
// which it would return the code 500.
type interpretedStore struct{ storage.Interface }

// interpret returns an API error for these errors, and every other error unchanged:
//
//   - BadRequest for a resourceVersion that is not a number;
//   - RequestEntityTooLarge for an object that is too large for etcd;
//   - StorageFull for a write for which etcd has no space.
func interpret(err error) error {
	var invalid storage.InvalidError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &invalid):
		// The text is that of the library for lists.
		return apierrors.NewBadRequest(fmt.Sprintf("invalid resource version: %v", err))
	case isTooLarge(err):
		return tooLargeError{apierrors.NewRequestEntityTooLargeError(fmt.Sprintf("the object is too large for etcd: %v", err))}
	case errors.Is(err, rpctypes.ErrNoSpace):
		return tenancyerrors.NewStorageFull(err)
	}
	return err
}

// tooLargeError is an API error that the library's handlers recognize. They then write the
// object again, without its managed fields, which may be larger than the rest.
type tooLargeError struct{ *apierrors.StatusError }

// GRPCStatus returns what handlers look for: the error of a gRPC client.
func (tooLargeError) GRPCStatus() *status.Status {
	return status.New(codes.ResourceExhausted, "trying to send message larger than max")
}

// isTooLarge reports whether a write was rejected for its size: by etcd, whose limit
// is --max-request-bytes, or by gRPC, which has no separate error for that, only a
// text.
func isTooLarge(err error) bool {
	return errors.Is(err, rpctypes.ErrRequestTooLarge) ||
		status.Code(err) == codes.ResourceExhausted && strings.Contains(err.Error(), "message larger than max")
}

func (s interpretedStore) Create(ctx context.Context, key string, obj, out runtime.Object, ttl uint64) error {
	return interpret(s.Interface.Create(ctx, key, obj, out, ttl))
}

func (s interpretedStore) Delete(ctx context.Context, key string, out runtime.Object, preconditions *storage.Preconditions,
	validateDeletion storage.ValidateObjectFunc, cachedExistingObject runtime.Object, opts storage.DeleteOptions) error {
	return interpret(s.Interface.Delete(ctx, key, out, preconditions, validateDeletion, cachedExistingObject, opts))
}

func (s interpretedStore) Watch(ctx context.Context, key string, opts storage.ListOptions) (watch.Interface, error) {
	w, err := s.Interface.Watch(ctx, key, opts)
	return w, interpret(err)
}

func (s interpretedStore) Get(ctx context.Context, key string, opts storage.GetOptions, objPtr runtime.Object) error {
	return interpret(s.Interface.Get(ctx, key, opts, objPtr))
}

func (s interpretedStore) GetList(ctx context.Context, key string, opts storage.ListOptions, listObj runtime.Object) error {
	return interpret(s.Interface.GetList(ctx, key, opts, listObj))
}

func (s interpretedStore) GuaranteedUpdate(ctx context.Context, key string, destination runtime.Object, ignoreNotFound bool,
	preconditions *storage.Preconditions, tryUpdate storage.UpdateFunc, cachedExistingObject runtime.Object) error {
	return interpret(s.Interface.GuaranteedUpdate(ctx, key, destination, ignoreNotFound, preconditions, tryUpdate, cachedExistingObject))
}
