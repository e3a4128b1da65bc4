// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package storage

import (
	"fmt"
	"path"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/registry/generic"
	"k8s.io/apiserver/pkg/storage/storagebackend"

	"github.com/borough-io/borough/pkg/storage/fence"
)

// newFence returns the fence around the config's resources, by where and how the
// getter's options store them.
func newFence(getter generic.RESTOptionsGetter, config Config) (*fence.Fence, error) {
	namespaces, storageConfig, err := fenced(getter, config.Namespaces)
	if err != nil {
		return nil, err
	}
	fenceConfig := fence.Config{
		Namespaces:  namespaces,
		Decoder:     storageConfig.Codec,
		Transformer: transformerOf(storageConfig),
		EpochKey:    path.Join("/", storageConfig.Prefix, "borough-epoch"),
	}
	servers := storageConfig.Transport.ServerList
	for _, gr := range config.Namespaced {
		resource, storageConfig, err := fenced(getter, gr)
		if err != nil {
			return nil, err
		}
		if !slices.Equal(slices.Sorted(slices.Values(servers)), slices.Sorted(slices.Values(storageConfig.Transport.ServerList))) {
			return nil, fmt.Errorf("--etcd-servers-overrides: %s and %s must be on the same etcd servers, because transactions tie them together", gr, config.Namespaces)
		}
		fenceConfig.Namespaced = append(fenceConfig.Namespaced, resource)
	}
	f, err := fence.New(fenceConfig)
	if err != nil {
		return nil, fmt.Errorf("fencing in namespaced resources: %w", err)
	}
	return f, nil
}

// fenced returns a resource with its key prefix, and how it is stored.
func fenced(getter generic.RESTOptionsGetter, gr schema.GroupResource) (fence.Resource, *storagebackend.ConfigForResource, error) {
	options, err := getter.GetRESTOptions(gr, nil)
	if err != nil {
		return fence.Resource{}, nil, err
	}
	prefix := path.Join("/", options.StorageConfig.Prefix, options.ResourcePrefix) + "/"
	return fence.Resource{GroupResource: gr, Prefix: prefix}, options.StorageConfig, nil
}
