// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package options

import (
	"time"

	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/component-base/tracing"

	"github.com/borough-io/borough/cmd/internal/client"
)

// kubeconfigs are how a server reaches the cluster.
type kubeconfigs struct {
	core, authentication, authorization *rest.Config
}

// loadKubeconfigs loads the kubeconfigs. Without one, the cluster is reached from inside it.
// The options of the library do that for an empty kubeconfig, too.
func (o *Options) loadKubeconfigs() (*kubeconfigs, error) {
	k := &kubeconfigs{}
	for _, flag := range []struct {
		file   client.File
		config **rest.Config
	}{
		{client.File{Flag: "kubeconfig", Path: o.CoreAPI.CoreAPIKubeconfigPath}, &k.core},
		{client.File{Flag: "authentication-kubeconfig", Path: o.Authentication.RemoteKubeConfigFile}, &k.authentication},
		{client.File{Flag: "authorization-kubeconfig", Path: o.Authorization.RemoteKubeConfigFile}, &k.authorization},
	} {
		load := flag.file.Load
		if flag.file.Path == "" {
			load = rest.InClusterConfig
		}
		var err error
		if *flag.config, err = load(); err != nil {
			return nil, err
		}
	}
	return k, nil
}

// applyTo does what CoreAPI.ApplyTo does.
func (k *kubeconfigs) applyTo(generic *genericapiserver.RecommendedConfig) error {
	config := rest.CopyConfig(k.core)
	config.Wrap(tracing.WrapperFor(generic.TracerProvider))
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	generic.ClientConfig = config
	generic.SharedInformerFactory = informers.NewSharedInformerFactory(client, 10*time.Minute)
	return nil
}
