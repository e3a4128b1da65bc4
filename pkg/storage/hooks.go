// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package storage

import (
	"context"
	"fmt"
	"time"

	"go.etcd.io/etcd/client/v3/kubernetes"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/storage"
)

// awaitTimeout bounds how long a write waits after it was carried out.
const awaitTimeout = 10 * time.Second

// awaitingClient is a client that calls Config.AwaitWrite after each write.
type awaitingClient struct {
	kubernetes.Interface
	resource schema.GroupResource
	await    func(context.Context, schema.GroupResource, int64) error
}

// OptimisticPut puts a value and waits.
func (c awaitingClient) OptimisticPut(ctx context.Context, key string, value []byte, expectedRevision int64, opts kubernetes.PutOptions) (kubernetes.PutResponse, error) {
	response, err := c.Interface.OptimisticPut(ctx, key, value, expectedRevision, opts)
	if err == nil && response.Succeeded {
		err = c.wait(ctx, response.Revision)
	}
	return response, err
}

// OptimisticDelete deletes a key and waits.
func (c awaitingClient) OptimisticDelete(ctx context.Context, key string, expectedRevision int64, opts kubernetes.DeleteOptions) (kubernetes.DeleteResponse, error) {
	response, err := c.Interface.OptimisticDelete(ctx, key, expectedRevision, opts)
	if err == nil && response.Succeeded {
		err = c.wait(ctx, response.Revision)
	}
	return response, err
}

func (c awaitingClient) wait(ctx context.Context, revision int64) error {
	ctx, cancel := context.WithTimeout(ctx, awaitTimeout)
	defer cancel()
	if err := c.await(ctx, c.resource, revision); err != nil {
		return apierrors.NewTimeoutError(fmt.Sprintf("%s were written, but this server does not follow the change yet: %v", c.resource, err), 0)
	}
	return nil
}

// watchWrappingStore is a store whose watches are those of Config.WrapWatch.
type watchWrappingStore struct {
	storage.Interface
	wrap func(context.Context, watch.Interface) watch.Interface
}

func (g *restOptionsGetter) wrapWatches(store storage.Interface) storage.Interface {
	if g.wrapWatch == nil {
		return store
	}
	return watchWrappingStore{store, g.wrapWatch}
}

// Watch watches the objects that the options select.
func (s watchWrappingStore) Watch(ctx context.Context, key string, opts storage.ListOptions) (watch.Interface, error) {
	w, err := s.Interface.Watch(ctx, key, opts)
	if err != nil {
		return nil, err
	}
	return s.wrap(ctx, w), nil
}
