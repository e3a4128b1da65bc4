// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package options

import (
	"context"
	"time"

	"golang.org/x/sync/errgroup"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/component-base/tracing"

	"github.com/borough-io/borough/cmd/internal/client"
)

// kubeconfigs are how a server reaches the cluster.
type kubeconfigs struct {
	files                               []*client.File // each once
	core, authentication, authorization *rest.Config
}

// loadKubeconfigs loads the kubeconfigs. Without one, the cluster is reached from inside it.
// The options of the library do that for an empty kubeconfig, too.
func (o *Options) loadKubeconfigs() (_ *kubeconfigs, err error) {
	k := &kubeconfigs{}
	loaded := map[string]*rest.Config{}
	for _, flag := range []struct {
		name, path string
		config     **rest.Config
	}{
		{"kubeconfig", o.CoreAPI.CoreAPIKubeconfigPath, &k.core},
		{"authentication-kubeconfig", o.Authentication.RemoteKubeConfigFile, &k.authentication},
		{"authorization-kubeconfig", o.Authorization.RemoteKubeConfigFile, &k.authorization},
	} {
		if loaded[flag.path] == nil {
			load := rest.InClusterConfig
			if flag.path != "" {
				file := &client.File{Flag: flag.name, Path: flag.path}
				k.files = append(k.files, file)
				load = file.Load
			}
			if loaded[flag.path], err = load(); err != nil {
				return nil, err
			}
		}
		*flag.config = loaded[flag.path]
	}
	return k, nil
}

// AwaitChange returns an error when a kubeconfig of the cluster or of the audit webhook is no
// longer that which Open has loaded, because the clients do not read it again, and nil when the
// context ends.
func (d *Dependencies) AwaitChange(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error {
		<-ctx.Done()
		return nil
	})
	for _, file := range d.watched {
		group.Go(func() error { return file.AwaitChange(ctx) })
	}
	return group.Wait()
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
