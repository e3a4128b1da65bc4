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
)

const userAgent = "borough-controller-manager"

// Config is all that the controller manager needs to run.
type Config struct {
	// Client reaches the server that serves Borough's API.
	Client *rest.Config
	// Workers is how many Namespaces are purged at once.
	Workers int
	// PurgeAPIGroups are the API groups whose kinds are purged.
	PurgeAPIGroups []string
	// HTTPBindAddress is where health and metrics are served; empty means
	// nowhere.
	HTTPBindAddress string
	// HTTPListener is used instead of HTTPBindAddress where it is set.
	HTTPListener net.Listener

	LeaderElection componentconfig.LeaderElectionConfiguration
}

// Config returns the config that the options, completed and valid, stand for.
func (o *Options) Config() (*Config, error) {
	client, err := o.clientConfig()
	if err != nil {
		return nil, err
	}
	return &Config{
		Client:          client,
		Workers:         o.ConcurrentNamespaceSyncs,
		PurgeAPIGroups:  o.PurgeAPIGroups,
		HTTPBindAddress: o.HTTPBindAddress,
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
