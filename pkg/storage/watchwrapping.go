// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package storage

import (
	"context"

	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/storage"
)

// watchWrappingStore is a store whose watches are those of Config.WrapWatch.
type watchWrappingStore struct {
	storage.Interface
	wrap func(context.Context, watch.Interface) watch.Interface
}

// Watch watches the objects that the options select.
func (s watchWrappingStore) Watch(ctx context.Context, key string, opts storage.ListOptions) (watch.Interface, error) {
	w, err := s.Interface.Watch(ctx, key, opts)
	if err != nil {
		return nil, err
	}
	return s.wrap(ctx, w), nil
}
