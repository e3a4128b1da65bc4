// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package storage

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/watch"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/server/options"
	serverstorage "k8s.io/apiserver/pkg/server/storage"
	"k8s.io/apiserver/pkg/storage/storagebackend"

	"github.com/borough-io/borough/pkg/storage/changes"
	"github.com/borough-io/borough/pkg/storage/embedded"
	"github.com/borough-io/borough/pkg/storage/unreadable"
)

const (
	// defaultPrefix is the prefix of all keys in etcd.
	defaultPrefix = "/registry"
	// DefaultDeleteCollectionWorkers is the number of objects that a
	// deletecollection request deletes in parallel. etcd writes concurrent requests
	// to disk in one batch, so many workers increase the throughput.
	DefaultDeleteCollectionWorkers = 64
)

// Options configure where and how objects are stored. They contain the library's
// options for etcd with all their flags; only the defaults differ.
type Options struct {
	Etcd *options.EtcdOptions
	// QuotaBytes is the limit for the size of the embedded member's database in bytes, at
	// least minQuotaBytes. Default: embedded.DefaultQuotaBytes.
	QuotaBytes int64
}

// minQuotaBytes is the smallest space quota with which a server can start.
const minQuotaBytes = 64 << 20

// NewOptions returns the defaults: the embedded member, protobuf, and
// DefaultDeleteCollectionWorkers.
func NewOptions() *Options {
	etcd := options.NewEtcdOptions(storagebackend.NewDefaultConfig(defaultPrefix, nil))
	etcd.DefaultStorageMediaType = runtime.ContentTypeProtobuf
	etcd.DeleteCollectionWorkers = DefaultDeleteCollectionWorkers
	return &Options{Etcd: etcd, QuotaBytes: embedded.DefaultQuotaBytes}
}

// AddFlags adds the library's flags (--etcd-servers and so on), and that for the space quota.
func (o *Options) AddFlags(fs *pflag.FlagSet) {
	o.Etcd.AddFlags(fs)
	fs.Int64Var(&o.QuotaBytes, "etcd-quota-backend-bytes", o.QuotaBytes, ""+
		"Space quota of the embedded etcd in bytes, at least 67108864 (64 MiB). When its database has reached it, only reads and deletes are accepted. Set it to less than the size of the disk, because etcd ends when that is full.")
}

// Embedded reports whether objects are stored in the embedded member, which is the
// case if --etcd-servers is not set.
func (o *Options) Embedded() bool { return len(o.Etcd.StorageConfig.Transport.ServerList) == 0 }

// Validate returns an error for each invalid flag.
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
		if o.QuotaBytes < minQuotaBytes {
			errs = append(errs, fmt.Errorf("--etcd-quota-backend-bytes must be at least %d, not %d", int64(minQuotaBytes), o.QuotaBytes))
		}
		// The library's validation requires a server.
		etcd.StorageConfig.Transport.ServerList = []string{"embedded"}
	} else if o.QuotaBytes != embedded.DefaultQuotaBytes {
		errs = append(errs, errors.New("--etcd-quota-backend-bytes and --etcd-servers cannot be used together: it is a flag of the servers"))
	}
	errs = append(errs, etcd.Validate()...)
	errs = append(errs, o.validateServers()...)
	if etcd.DeleteCollectionWorkers < 1 {
		errs = append(errs, fmt.Errorf("--delete-collection-workers must be at least 1, not %d", etcd.DeleteCollectionWorkers))
	}
	if seconds := etcd.StorageConfig.LeaseManagerConfig.ReuseDurationSeconds; seconds < 0 {
		errs = append(errs, fmt.Errorf("--lease-reuse-duration-seconds must not be negative, but is %d", seconds))
	}
	for _, d := range []struct {
		flag  string
		value time.Duration
		zero  bool // whether 0 is allowed; it turns something off
	}{
		// Nothing else compacts the embedded member.
		{"--etcd-compaction-interval", etcd.StorageConfig.CompactionInterval, !o.Embedded()},
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

// validateServers returns an error for each server that the client could never
// connect to, however long it waits.
func (o *Options) validateServers() []error {
	var errs []error
	for _, server := range o.Etcd.StorageConfig.Transport.ServerList {
		if err := validateServer(server); err != nil {
			errs = append(errs, fmt.Errorf("--etcd-servers: %w", err))
		}
	}
	// Validation of the library has returned the error, if there is one.
	overrides, _ := options.ParseEtcdServersOverrides(o.Etcd.EtcdServersOverrides)
	for _, override := range overrides {
		for _, server := range override.Servers {
			if err := validateServer(server); err != nil {
				errs = append(errs, fmt.Errorf("--etcd-servers-overrides: %w", err))
			}
		}
	}
	return errs
}

func validateServer(server string) error {
	scheme, rest, ok := strings.Cut(server, "://")
	if !ok {
		// etcd's client accepts HOST:PORT too.
		scheme, rest = "http", server
	}
	switch scheme {
	case "unix", "unixs":
		return nil
	case "http", "https":
		u, err := url.Parse(scheme + "://" + rest)
		if err == nil && u.Hostname() != "" && u.Port() != "" {
			return nil
		}
	}
	return fmt.Errorf("%q is not a URL like https://HOST:PORT", server)
}

// Config contains the parameters of ApplyTo that are not options.
type Config struct {
	// Scheme has the stored types. Each is stored in the preferred version of its
	// group.
	Scheme *runtime.Scheme
	// Embedded is the embedded member, required if and only if Options.Embedded. It
	// must be closed after the server has stopped.
	Embedded *embedded.Server
	// Namespaced are all namespaced resources.
	Namespaced []schema.GroupResource
	// Unreadable records the stored objects that cannot be read.
	Unreadable *unreadable.Objects
	// AwaitWrite is called after each write, with the revision of etcd that it has
	// made, and after an update that changes nothing, with the revision that has made
	// the object what it is. The write is answered when it returns. It may be nil.
	AwaitWrite func(ctx context.Context, resource schema.GroupResource, revision int64) error
	// Feed gets the changes of all objects of Followed, which have to be on the same
	// etcd servers as the Namespaces. It is given its source. It may be nil.
	Feed     *changes.Feed
	Followed []schema.GroupResource
	// WrapWatch returns the watch that a client gets for one from storage. The context
	// is that of the request. It may be nil.
	WrapWatch func(ctx context.Context, watch watch.Interface) watch.Interface
}

// ApplyTo adds to the server config the Backend that it returns, the health and readiness
// checks of etcd, the monitor of the database size and, with
// --encryption-provider-config, the transformers of stored values. It does not wait
// for the etcd servers, and neither do the stores: the server starts without them,
// and is not ready before they have answered.
func (o *Options) ApplyTo(c *genericapiserver.Config, config Config) (*Backend, error) {
	if o.Embedded() != (config.Embedded != nil) {
		return nil, errors.New("exactly one of the embedded etcd and --etcd-servers is required")
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
		return nil, err
	}
	clusters, err := newClusters(&etcd, config.Embedded)
	if err != nil {
		return nil, err
	}
	if err := applyLibrary(&etcd, factory, clusters, c); err != nil {
		return nil, err
	}
	library := etcd.CreateRESTOptionsGetter(factory, c.ResourceTransformers)
	caches := newWatchCaches(config.Namespaced)
	resources, err := newResources(library)
	if err != nil {
		return nil, err
	}
	fence, charger, err := newFence(resources, config.Namespaced, caches, config.Unreadable)
	if err != nil {
		return nil, err
	}
	connections := newConnections(config.Embedded)
	if config.Feed != nil {
		source, err := newSource(resources, connections, config)
		if err != nil {
			return nil, err
		}
		config.Feed.SetSource(source)
	}
	backend := &Backend{
		library:     library,
		options:     etcd,
		connections: connections,
		fence:       fence,
		charger:     charger,
		caches:      caches,
		feed:        config.Feed,
		unreadable:  config.Unreadable,
		awaitWrite:  config.AwaitWrite,
		wrapWatch:   config.WrapWatch,
	}
	c.RESTOptionsGetter = backend
	return backend, nil
}

// storageFactory is the library's storage factory, except that the prefix of a
// resource contains its group.
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
	return cmp.Or(resource.Group, "core") + "/" + resource.Resource
}
