// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package options

import (
	"fmt"
	"net"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	componentconfig "k8s.io/component-base/config"

	"github.com/borough-io/borough/pkg/certificates/etcdca"
)

const userAgent = "borough-controller-manager"

// Config is the configuration of a controller manager.
type Config struct {
	// Client is the config of the client for the server that serves Borough's API.
	Client *rest.Config
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
	client, err := o.clientConfig()
	if err != nil {
		return nil, err
	}
	etcdCA, err := o.Etcd.config()
	if err != nil {
		return nil, err
	}
	return &Config{
		Client:          client,
		Workers:         o.ConcurrentNamespaceSyncs,
		PurgeAPIGroups:  o.PurgeAPIGroups,
		HTTPBindAddress: o.HTTPBindAddress,
		EtcdCA:          etcdCA,
		LeaderElection:  o.LeaderElection,
	}, nil
}

func (o *Options) clientConfig() (config *rest.Config, err error) {
	if o.Kubeconfig == "" {
		if config, err = rest.InClusterConfig(); err != nil {
			return nil, fmt.Errorf("pass --kubeconfig=FILE; without it: %w", err)
		}
	} else {
		rules := &clientcmd.ClientConfigLoadingRules{ExplicitPath: o.Kubeconfig}
		config, err = clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, &clientcmd.ConfigOverrides{}).ClientConfig()
		if err != nil {
			return nil, fmt.Errorf("--kubeconfig=%s: %w", o.Kubeconfig, err)
		}
	}
	config.QPS, config.Burst = o.KubeAPIQPS, o.KubeAPIBurst
	config.ContentType = runtime.ContentTypeProtobuf
	config.AcceptContentTypes = runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON
	return rest.AddUserAgent(config, userAgent), nil
}
