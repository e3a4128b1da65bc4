// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package storage

import (
	"fmt"
	"path"

	clientv3 "go.etcd.io/etcd/client/v3"

	"k8s.io/apiserver/pkg/registry/generic"

	"github.com/borough-io/borough/pkg/storage/changes"
)

// newSource returns the source of Config.Feed.
func newSource(getter generic.RESTOptionsGetter, connections *connections, config Config) (changes.Source, error) {
	_, storageConfig, err := fenceResource(getter, config.Namespaces)
	if err != nil {
		return changes.Source{}, err
	}
	transport := storageConfig.Transport
	source := changes.Source{BeginKey: path.Join("/", storageConfig.Prefix, "borough-views"), Connect: func() (*clientv3.Client, func(), error) {
		client, err := connections.client(transport)
		if err != nil {
			return nil, nil, err
		}
		return client.Client, func() { _ = client.Close() }, nil
	}}
	for _, gr := range config.Followed {
		resource, storageConfig, err := fenceResource(getter, gr)
		if err != nil {
			return changes.Source{}, err
		}
		if !sameServers(transport.ServerList, storageConfig.Transport.ServerList) {
			return changes.Source{}, fmt.Errorf("--etcd-servers-overrides: %s and %s must be on the same etcd servers, because their changes are followed in one order", gr, config.Namespaces)
		}
		source.Resources = append(source.Resources, changes.Resource{
			GroupResource: gr,
			Prefix:        resource.Prefix,
			Decoder:       storageConfig.Codec,
			Transformer:   transformerOf(storageConfig),
		})
	}
	return source, nil
}
