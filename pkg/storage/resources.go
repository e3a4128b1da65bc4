// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package storage

import (
	"fmt"
	"path"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/registry/generic"
	"k8s.io/apiserver/pkg/storage/storagebackend"

	"github.com/borough-io/borough/pkg/apis/tenancy"
	"github.com/borough-io/borough/pkg/storage/stored"
)

// resources are those on the etcd servers of the Namespaces.
type resources struct {
	getter     generic.RESTOptionsGetter
	namespaces stored.Resource
	// transport is that to the etcd servers, and prefix the prefix of all keys.
	transport storagebackend.TransportConfig
	prefix    string
}

// newResources returns the resources. The options of the getter define where and how they
// are stored.
func newResources(getter generic.RESTOptionsGetter) (*resources, error) {
	namespaces, config, err := storedResource(getter, tenancy.Resource("namespaces"))
	if err != nil {
		return nil, err
	}
	return &resources{getter: getter, namespaces: namespaces, transport: config.Transport, prefix: path.Join("/", config.Prefix)}, nil
}

// all returns the resources. It returns an error, with the reason why not, if one is on
// other etcd servers.
func (r *resources) all(of []schema.GroupResource, reason string) ([]stored.Resource, error) {
	var all []stored.Resource
	for _, gr := range of {
		resource, config, err := storedResource(r.getter, gr)
		if err != nil {
			return nil, err
		}
		if !sameServers(r.transport.ServerList, config.Transport.ServerList) {
			return nil, fmt.Errorf("--etcd-servers-overrides: %s and %s must be on the same etcd servers, because %s", gr, r.namespaces.GroupResource, reason)
		}
		all = append(all, resource)
	}
	return all, nil
}

func storedResource(getter generic.RESTOptionsGetter, gr schema.GroupResource) (stored.Resource, *storagebackend.ConfigForResource, error) {
	options, err := getter.GetRESTOptions(gr, nil)
	if err != nil {
		return stored.Resource{}, nil, err
	}
	config := options.StorageConfig
	return stored.Resource{
		GroupResource: gr,
		Prefix:        path.Join("/", config.Prefix, options.ResourcePrefix) + "/",
		Codec:         config.Codec,
		Transformer:   transformerOf(config),
	}, config, nil
}
