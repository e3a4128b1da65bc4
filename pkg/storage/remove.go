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

// removingStore is a store that can remove an object that its caller has already
// read. The library's Delete also accepts such an object, but encodes and decodes
// it, which takes far longer than the removal, and the watch cache replaces it by
// its own copy.
type removingStore struct {
	storage.Interface
	*remover
}

// remover removes objects of one resource.
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

// Remove removes the object with the key if it still has the resourceVersion, and
// reports whether it was removed.
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
