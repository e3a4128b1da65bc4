// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package storage

import (
	"context"
	"path"
	"strings"
	"time"

	"go.etcd.io/etcd/client/v3/kubernetes"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/apiserver/pkg/storage/etcd3/metrics"
	"k8s.io/apiserver/pkg/storage/storagebackend"
)

// removingStore is a store that can remove an object that its caller knows
// already. The library's Delete takes such an object too, but encodes and
// decodes it for its own ends, which is far more work than the removal, and the
// watch cache puts its own copy in the place of it.
type removingStore struct {
	storage.Interface
	*remover
}

// remover removes keys of one resource.
type remover struct {
	client         kubernetes.Interface
	resource       schema.GroupResource
	pathPrefix     string
	resourcePrefix string
}

func newRemover(client kubernetes.Interface, config *storagebackend.ConfigForResource, resourcePrefix string) *remover {
	return &remover{
		client:         client,
		resource:       config.GroupResource,
		pathPrefix:     strings.TrimSuffix(path.Join("/", config.Prefix), "/"),
		resourcePrefix: resourcePrefix,
	}
}

// Remove removes the object of the key if it still has the resourceVersion, and
// tells whether it did.
func (r *remover) Remove(ctx context.Context, key string, resourceVersion uint64) (removed bool, err error) {
	key, err = storage.PrepareKey(r.resourcePrefix, key, false)
	if err != nil {
		return false, err
	}
	start := time.Now()
	response, err := r.client.OptimisticDelete(ctx, r.pathPrefix+"/"+strings.TrimPrefix(key, "/"), int64(resourceVersion), kubernetes.DeleteOptions{})
	metrics.RecordEtcdRequest("delete", r.resource, err, start)
	return response.Succeeded, err
}
