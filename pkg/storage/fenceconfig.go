// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package storage

import (
	"fmt"
	"path"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/registry/generic"
	"k8s.io/apiserver/pkg/storage/storagebackend"

	"github.com/borough-io/borough/pkg/storage/charge"
	"github.com/borough-io/borough/pkg/storage/fence"
)

// newFence returns the fence for the resources of the config. The options of the
// getter define where and how these are stored.
func newFence(getter generic.RESTOptionsGetter, config Config, caches *watchCaches) (*fence.Fence, error) {
	namespaces, storageConfig, err := fenceResource(getter, config.Namespaces)
	if err != nil {
		return nil, err
	}
	fenceConfig := fence.Config{
		Namespaces:    namespaces,
		Decoder:       storageConfig.Codec,
		Transformer:   transformerOf(storageConfig),
		GenerationKey: path.Join("/", storageConfig.Prefix, "borough-create-generation"),
		GuardPrefix:   path.Join("/", storageConfig.Prefix, "borough-guards") + "/",
		SeemsEmpty:    caches.empty,
	}
	servers := storageConfig.Transport.ServerList
	sameEtcd := func(gr schema.GroupResource) (fence.Resource, *storagebackend.ConfigForResource, error) {
		resource, storageConfig, err := fenceResource(getter, gr)
		if err == nil && !sameServers(servers, storageConfig.Transport.ServerList) {
			err = fmt.Errorf("--etcd-servers-overrides: %s and %s must be on the same etcd servers, because they are in the same transactions", gr, config.Namespaces)
		}
		return resource, storageConfig, err
	}
	for _, gr := range config.Conditional {
		resource, _, err := sameEtcd(gr)
		if err != nil {
			return nil, err
		}
		fenceConfig.Conditional = append(fenceConfig.Conditional, resource)
	}
	var charged []charge.Resource
	for _, gr := range config.Namespaced {
		resource, storageConfig, err := sameEtcd(gr)
		if err != nil {
			return nil, err
		}
		fenceConfig.Namespaced = append(fenceConfig.Namespaced, resource)
		charged = append(charged, charge.Resource{GroupResource: gr, Prefix: resource.Prefix, Codec: storageConfig.Codec, Transformer: transformerOf(storageConfig)})
	}
	if !config.Quotas.Empty() {
		if fenceConfig.Charger, err = charge.New(config.Quotas, charged, caches.pods); err != nil {
			return nil, fmt.Errorf("charge quotas: %w", err)
		}
	}
	f, err := fence.New(fenceConfig)
	if err != nil {
		return nil, fmt.Errorf("creating the fence: %w", err)
	}
	return f, nil
}

// fenceResource returns a resource with its key prefix, and its storage config.
func fenceResource(getter generic.RESTOptionsGetter, gr schema.GroupResource) (fence.Resource, *storagebackend.ConfigForResource, error) {
	options, err := getter.GetRESTOptions(gr, nil)
	if err != nil {
		return fence.Resource{}, nil, err
	}
	prefix := path.Join("/", options.StorageConfig.Prefix, options.ResourcePrefix) + "/"
	return fence.Resource{GroupResource: gr, Prefix: prefix}, options.StorageConfig, nil
}
