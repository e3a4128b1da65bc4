// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package storage

import (
	"context"
	"fmt"
	"path"
	"sync"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/kubernetes"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/apiserver/pkg/storage/etcd3"
	"k8s.io/apiserver/pkg/storage/storagebackend"
	"k8s.io/apiserver/pkg/storage/storagebackend/factory"
	"k8s.io/apiserver/pkg/storage/value"
	"k8s.io/apiserver/pkg/storage/value/encrypt/identity"

	"github.com/borough-io/borough/pkg/apis/tenancy"
	"github.com/borough-io/borough/pkg/storage/etcdwatch"
	"github.com/borough-io/borough/pkg/storage/podspec"
	"github.com/borough-io/borough/pkg/storage/transaction"
	"github.com/borough-io/borough/pkg/storage/unreadable"
)

// transformerOf returns the transformer of stored values.
func transformerOf(config *storagebackend.ConfigForResource) value.Transformer {
	if config.Transformer == nil {
		return identity.NewEncryptCheckTransformer()
	}
	return config.Transformer
}

// nextRevision returns a function that writes a key to etcd, and returns the revision.
func nextRevision(client *clientv3.Client, key string) func(context.Context) (int64, error) {
	return func(ctx context.Context) (int64, error) {
		response, err := client.Put(ctx, key, "")
		if err != nil {
			return 0, fmt.Errorf("write %s: %w", key, err)
		}
		return response.Header.Revision, nil
	}
}

// newClient returns a client for one resource whose writes go through the fence.
func (b *Backend) newClient(config *storagebackend.ConfigForResource) (*kubernetes.Client, error) {
	client, err := b.connections.client(config.Transport)
	if err != nil {
		return nil, err
	}
	client.KV = etcdwatch.NewKV(etcd3.NewETCDLatencyTracker(client.KV))
	client.Watcher = etcdwatch.New(client.Client, writesSeveral(config.GroupResource))
	client.Kubernetes = transaction.NewClient(b.charger.NewClient(ambiguousWriteRetrier{
		Interface: b.fence.Wrap(config.GroupResource, client),
		outcomes:  fenceResolver{b.fence, client.Client, &b.connections.reached},
	}, client.KV), b.charger.CheckAdded)
	if b.awaitWrite != nil {
		client.Kubernetes = awaitingClient{client.Kubernetes, awaiter{config.GroupResource, b.awaitWrite}}
	}
	return client, nil
}

// decodeShared returns the DecodeShared of unreadable.Config for a resource, or nil.
func (b *Backend) decodeShared(config *storagebackend.ConfigForResource) func(encoded []byte) runtime.Object {
	switch {
	case b.charger.IsQuotas(config.GroupResource):
		return b.charger.Decoded
	case config.GroupResource == tenancy.Resource("pods"):
		return podspec.NewDecoder(config.Codec).Decode
	}
	return nil
}

// newStore creates the store of one resource, as the library's storage factory
// does, but with a client that writes through the fence.
func (b *Backend) newStore(
	config *storagebackend.ConfigForResource,
	resourcePrefix string,
	newFunc, newListFunc func() runtime.Object,
	cached bool,
) (storage.Interface, *remover, factory.DestroyFunc, error) {
	compactor, stopCompactor, err := b.connections.compactor(config.Transport, config.CompactionInterval)
	if err != nil {
		return nil, nil, nil, err
	}
	client, err := b.newClient(config)
	if err != nil {
		stopCompactor()
		return nil, nil, nil, err
	}
	versioner := storage.APIObjectVersioner{}
	store, closeStore, err := unreadable.New(unreadable.Config{
		Resource:       config.GroupResource,
		PathPrefix:     path.Join("/", config.Prefix),
		ResourcePrefix: resourcePrefix,
		Client:         client.Kubernetes,
		NextRevision:   nextRevision(client.Client, path.Join("/", config.Prefix, "borough-recovered")),
		Codec:          config.Codec,
		Transformer:    transformerOf(config),
		Versioner:      versioner,
		DecodeShared:   b.decodeShared(config),
		NewFunc:        newFunc,
		Cached:         cached,
		Objects:        b.unreadable,
	}, func(parts unreadable.Parts) (unreadable.Library, error) {
		return etcd3.New(client, compactor, parts.Codec, newFunc, newListFunc, config.Prefix, resourcePrefix,
			config.GroupResource, parts.Transformer, config.LeaseManagerConfig, parts.Decoder, versioner)
	})
	if err != nil {
		stopCompactor()
		_ = client.Close()
		return nil, nil, nil, err
	}
	// Storages that share a store, such as those of subresources, all call this.
	destroy := sync.OnceFunc(func() {
		closeStore()
		stopCompactor()
		_ = client.Close()
	})
	return b.charger.NewStore(store, config.GroupResource), newRemover(client.Kubernetes, config, resourcePrefix), destroy, nil
}
