// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package storage

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/pflag"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/server/options"
	serverstorage "k8s.io/apiserver/pkg/server/storage"
	"k8s.io/apiserver/pkg/storage/storagebackend"

	"github.com/borough-io/borough/pkg/storage/embedded"
)

const (
	// DefaultPrefix is where in etcd all keys are.
	DefaultPrefix = "/registry"
	// DefaultDeleteCollectionWorkers is how many objects one deletecollection
	// deletes at a time. etcd writes what is under way to disk together, so it
	// takes a good number to keep it busy.
	DefaultDeleteCollectionWorkers = 64
)

// Options say where and how objects are stored. They hold the library's options
// for etcd and keep all its flags; only the defaults differ.
type Options struct {
	Etcd *options.EtcdOptions
}

// NewOptions returns the defaults: the embedded member, protobuf, and
// DefaultDeleteCollectionWorkers.
func NewOptions() *Options {
	etcd := options.NewEtcdOptions(storagebackend.NewDefaultConfig(DefaultPrefix, nil))
	etcd.DefaultStorageMediaType = runtime.ContentTypeProtobuf
	etcd.DeleteCollectionWorkers = DefaultDeleteCollectionWorkers
	return &Options{Etcd: etcd}
}

// AddFlags adds the library's flags (--etcd-servers and so on).
func (o *Options) AddFlags(fs *pflag.FlagSet) { o.Etcd.AddFlags(fs) }

// Embedded says whether the objects belong in the embedded member, which is so
// when no --etcd-servers are given.
func (o *Options) Embedded() bool { return len(o.Etcd.StorageConfig.Transport.ServerList) == 0 }

// Validate returns what is wrong with the flags.
func (o *Options) Validate() []error {
	etcd := *o.Etcd
	var errs []error
	if o.Embedded() {
		for _, f := range []struct {
			flag string
			set  bool
		}{
			{"--etcd-servers-overrides", len(etcd.EtcdServersOverrides) > 0},
			{"--etcd-cafile", etcd.StorageConfig.Transport.TrustedCAFile != ""},
			{"--etcd-certfile", etcd.StorageConfig.Transport.CertFile != ""},
			{"--etcd-keyfile", etcd.StorageConfig.Transport.KeyFile != ""},
		} {
			if f.set {
				errs = append(errs, fmt.Errorf("%s needs --etcd-servers", f.flag))
			}
		}
		// The library wants servers; it has none to talk to.
		etcd.StorageConfig.Transport.ServerList = []string{"embedded"}
	}
	errs = append(errs, etcd.Validate()...)
	if etcd.DeleteCollectionWorkers < 1 {
		errs = append(errs, fmt.Errorf("--delete-collection-workers must be at least 1, not %d", etcd.DeleteCollectionWorkers))
	}
	for _, d := range []struct {
		flag  string
		value time.Duration
		zero  bool // whether 0 turns something off
	}{
		{"--etcd-compaction-interval", etcd.StorageConfig.CompactionInterval, true},
		{"--etcd-count-metric-poll-period", etcd.StorageConfig.CountMetricPollPeriod, true},
		{"--etcd-db-metric-poll-interval", etcd.StorageConfig.DBMetricPollInterval, true},
		{"--etcd-healthcheck-timeout", etcd.StorageConfig.HealthcheckTimeout, false},
		{"--etcd-readycheck-timeout", etcd.StorageConfig.ReadycheckTimeout, false},
	} {
		switch {
		case d.value < 0 && d.zero:
			errs = append(errs, fmt.Errorf("%s must not be negative, but is %v", d.flag, d.value))
		case d.value <= 0 && !d.zero:
			errs = append(errs, fmt.Errorf("%s must be positive, not %v", d.flag, d.value))
		}
	}
	if _, err := options.ParseWatchCacheSizes(etcd.WatchCacheSizes); err != nil {
		errs = append(errs, fmt.Errorf("--watch-cache-sizes: %w", err))
	}
	return errs
}

// Config is what ApplyTo needs besides the options.
type Config struct {
	// Scheme holds the types that are stored; each in its group's preferred
	// version.
	Scheme *runtime.Scheme
	// Embedded is the member to store in, required if and only if
	// Options.Embedded. It must be closed after the server has ended.
	Embedded *embedded.Server
	// Namespaces and Namespaced are what the fence is around: the resource whose
	// objects hold others, and all the resources whose objects live in one.
	Namespaces schema.GroupResource
	Namespaced []schema.GroupResource
}

// ApplyTo gives the server config its RESTOptionsGetter, its health and
// readiness checks of etcd, the monitor of the database's size and, with
// --encryption-provider-config, the transformers of stored values.
func (o *Options) ApplyTo(c *genericapiserver.Config, config Config) error {
	if o.Embedded() != (config.Embedded != nil) {
		return errors.New("the embedded etcd and --etcd-servers exclude each other, and one is needed")
	}
	if config.Namespaces.Empty() {
		return errors.New("the resource that the fence is around, Config.Namespaces, is missing")
	}
	etcd := *o.Etcd
	storageConfig := &etcd.StorageConfig
	if storageConfig.StorageObjectCountTracker == nil {
		storageConfig.StorageObjectCountTracker = c.StorageObjectCountTracker
	}
	if c.TracerProvider != nil {
		storageConfig.Transport.TracerProvider = c.TracerProvider
	}
	if c.EgressSelector != nil {
		storageConfig.Transport.EgressLookup = c.EgressSelector.Lookup
	}
	factory, err := newStorageFactory(&etcd, config.Scheme)
	if err != nil {
		return err
	}
	if config.Embedded != nil {
		err = applyEmbedded(&etcd, factory, config.Embedded, c)
	} else {
		err = etcd.ApplyWithStorageFactoryTo(factory, c)
	}
	if err != nil {
		return err
	}
	library := etcd.CreateRESTOptionsGetter(factory, c.ResourceTransformers)
	fence, err := newFence(library, config)
	if err != nil {
		return err
	}
	c.RESTOptionsGetter = &restOptionsGetter{
		library:     library,
		options:     etcd,
		connections: newConnections(config.Embedded),
		fence:       fence,
	}
	return nil
}

// storageFactory is the library's, with the resource's group in its prefix.
type storageFactory struct {
	*serverstorage.DefaultStorageFactory
}

func newStorageFactory(etcd *options.EtcdOptions, scheme *runtime.Scheme) (storageFactory, error) {
	factory := storageFactory{serverstorage.NewDefaultStorageFactory(
		etcd.StorageConfig,
		etcd.DefaultStorageMediaType,
		serializer.NewCodecFactory(scheme),
		serverstorage.NewDefaultResourceEncodingConfig(scheme),
		serverstorage.NewResourceConfig(),
		nil,
	)}
	overrides, err := options.ParseEtcdServersOverrides(etcd.EtcdServersOverrides)
	if err != nil {
		return storageFactory{}, err
	}
	for _, override := range overrides {
		factory.SetEtcdLocation(override.GroupResource, slices.Clone(override.Servers))
	}
	return factory, nil
}

func (f storageFactory) ResourcePrefix(resource schema.GroupResource) string {
	return resource.Group + "/" + resource.Resource
}
