// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package options

import (
	"context"
	"net"

	"k8s.io/client-go/rest"
	componentconfig "k8s.io/component-base/config"

	"github.com/borough-io/borough/pkg/certificates/etcdca"
)

const userAgent = "borough-controller-manager"

// Config is the configuration of a controller manager.
type Config struct {
	// Client is the config of the client for the server that serves Borough's API.
	Client *rest.Config
	// AwaitClientChange returns an error when the process has to be started again to use the
	// client's configuration. It may be nil.
	AwaitClientChange func(context.Context) error
	// Workers is the number of Namespaces that are purged concurrently.
	Workers int
	// PurgeAPIGroups are the API groups whose objects are purged.
	PurgeAPIGroups []string
	// HTTPBindAddress is the address that health and metrics are served on. If
	// empty, they are not served.
	HTTPBindAddress string
	// HTTPListener replaces HTTPBindAddress if it is not nil.
	HTTPListener net.Listener

	// EtcdCA, if not nil, configures the issuer of etcd's certificates.
	EtcdCA *etcdca.Config

	LeaderElection componentconfig.LeaderElectionConfiguration
}

// Config returns the config for the completed and validated options.
func (o *Options) Config() (*Config, error) {
	client, err := o.Client.Config(userAgent)
	if err != nil {
		return nil, err
	}
	etcdCA, err := o.Etcd.config()
	if err != nil {
		return nil, err
	}
	return &Config{
		Client:            client,
		AwaitClientChange: o.Client.AwaitChange,
		Workers:           o.ConcurrentNamespaceSyncs,
		PurgeAPIGroups:    o.PurgeAPIGroups,
		HTTPBindAddress:   o.HTTPBindAddress,
		EtcdCA:            etcdCA,
		LeaderElection:    o.LeaderElection,
	}, nil
}
