// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package storage

import (
	"path"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/borough-io/borough/pkg/storage/changes"
)

// newSource returns the source of Config.Feed.
func newSource(resources *resources, connections *connections, config Config) (changes.Source, error) {
	followed, err := resources.all(config.Followed, "their changes are followed in one order")
	if err != nil {
		return changes.Source{}, err
	}
	return changes.Source{
		BeginKey:  path.Join(resources.prefix, "borough-views"),
		Resources: followed,
		Connect: func() (*clientv3.Client, func(), error) {
			client, err := connections.client(resources.transport)
			if err != nil {
				return nil, nil, err
			}
			return client.Client, func() { _ = client.Close() }, nil
		},
	}, nil
}
