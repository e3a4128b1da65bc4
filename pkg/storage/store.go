// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package storage

import (
	"context"
	"sync"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/features"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/apiserver/pkg/storage/etcd3"
	"k8s.io/apiserver/pkg/storage/storagebackend"
	"k8s.io/apiserver/pkg/storage/storagebackend/factory"
	"k8s.io/apiserver/pkg/storage/value"
	"k8s.io/apiserver/pkg/storage/value/encrypt/identity"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
)

// transformerOf returns what stands between stored and encoded objects.
func transformerOf(config *storagebackend.ConfigForResource) value.Transformer {
	if config.Transformer == nil {
		return identity.NewEncryptCheckTransformer()
	}
	return config.Transformer
}

// newStore makes the store of one resource, as the library's storage factory
// does, on a client of our own.
func (g *restOptionsGetter) newStore(
	config *storagebackend.ConfigForResource,
	resourcePrefix string,
	newFunc, newListFunc func() runtime.Object,
) (storage.Interface, *remover, factory.DestroyFunc, error) {
	compactor, stopCompactor, err := g.connections.compactor(config.Transport, config.CompactionInterval)
	if err != nil {
		return nil, nil, nil, err
	}
	client, err := g.connections.client(config.Transport)
	if err != nil {
		stopCompactor()
		return nil, nil, nil, err
	}
	client.KV = etcd3.NewETCDLatencyTracker(client.KV)
	client.Kubernetes = decided{
		Interface: g.fence.Wrap(config.GroupResource, client),
		endEpoch:  func(ctx context.Context) error { return g.fence.EndEpoch(ctx, client.KV) },
	}

	transformer := transformerOf(config)
	versioner := storage.APIObjectVersioner{}
	decoder := etcd3.NewDefaultDecoder(config.Codec, versioner)
	deleteCorrupt := utilfeature.DefaultFeatureGate.Enabled(features.AllowUnsafeMalformedObjectDeletion)
	if deleteCorrupt {
		transformer = etcd3.WithCorruptObjErrorHandlingTransformer(transformer)
		decoder = etcd3.WithCorruptObjErrorHandlingDecoder(decoder)
	}
	store, err := etcd3.New(client, compactor, config.Codec, newFunc, newListFunc, config.Prefix, resourcePrefix,
		config.GroupResource, transformer, config.LeaseManagerConfig, decoder, versioner)
	if err != nil {
		stopCompactor()
		_ = client.Close()
		return nil, nil, nil, err
	}
	// Storages that share a store, as subresources do, all destroy it.
	destroy := sync.OnceFunc(func() {
		stopCompactor()
		store.Close()
		_ = client.Close()
	})
	remover := newRemover(client.Kubernetes, config, resourcePrefix)
	if deleteCorrupt {
		return etcd3.NewStoreWithUnsafeCorruptObjectDeletion(store, config.GroupResource), remover, destroy, nil
	}
	return store, remover, destroy, nil
}
