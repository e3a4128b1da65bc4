// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package storage

import (
	"context"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/storage"
)

// scopedStore is a store that does not use the indexes of its watch cache in a Namespace. They
// are of all Namespaces: such a list would copy what the others have under the same value, and
// such a watch would get the events of all of them, to discard them.
type scopedStore struct {
	storage.Interface
	prefix string // of the keys of all Namespaces
}

// GetList lists objects.
func (s scopedStore) GetList(ctx context.Context, key string, opts storage.ListOptions, list runtime.Object) error {
	return s.Interface.GetList(ctx, key, s.scoped(key, opts), list)
}

// Watch watches objects.
func (s scopedStore) Watch(ctx context.Context, key string, opts storage.ListOptions) (watch.Interface, error) {
	return s.Interface.Watch(ctx, key, s.scoped(key, opts))
}

func (s scopedStore) scoped(key string, opts storage.ListOptions) storage.ListOptions {
	if strings.Trim(key, "/") != strings.Trim(s.prefix, "/") {
		opts.Predicate.IndexFields = nil
	}
	return opts
}
