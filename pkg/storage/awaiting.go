// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package storage

import (
	"context"
	"fmt"
	"time"

	"go.etcd.io/etcd/client/v3/kubernetes"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/storage"
)

// awaitTimeout bounds how long a write waits after it was carried out.
const awaitTimeout = 10 * time.Second

// awaiter calls Config.AwaitWrite for one resource.
type awaiter struct {
	resource schema.GroupResource
	await    func(context.Context, schema.GroupResource, int64) error
}

func (a awaiter) wait(ctx context.Context, revision int64) error {
	ctx, cancel := context.WithTimeout(ctx, awaitTimeout)
	defer cancel()
	if err := a.await(ctx, a.resource, revision); err != nil {
		return apierrors.NewTimeoutError(fmt.Sprintf("%s were written, but the change is not in force on this server yet: %v", a.resource, err), 0)
	}
	return nil
}

// awaitingClient is a client that waits after each write.
type awaitingClient struct {
	kubernetes.Interface
	awaiter
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

// awaitingStore is a store that also waits after an update that changes nothing,
// because another server has written the same before.
type awaitingStore struct {
	storage.Interface
	awaiter
}

// GuaranteedUpdate updates an object and waits.
func (s awaitingStore) GuaranteedUpdate(ctx context.Context, key string, destination runtime.Object, ignoreNotFound bool,
	preconditions *storage.Preconditions, tryUpdate storage.UpdateFunc, cachedExistingObject runtime.Object) error {
	if err := s.Interface.GuaranteedUpdate(ctx, key, destination, ignoreNotFound, preconditions, tryUpdate, cachedExistingObject); err != nil {
		return err
	}
	revision, err := s.Versioner().ObjectResourceVersion(destination)
	if err != nil {
		return fmt.Errorf("read the resourceVersion of an updated object of %s: %w", s.resource, err)
	}
	return s.wait(ctx, int64(revision))
}
