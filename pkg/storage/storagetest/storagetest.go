// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

// Package storagetest provides etcd, and stores that use it, for tests.
package storagetest

import (
	"errors"
	"net/url"
	"strings"
	"testing"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/embed"
	"go.uber.org/zap"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	genericapiserver "k8s.io/apiserver/pkg/server"

	"github.com/borough-io/borough/pkg/apis/kubernetes"
	"github.com/borough-io/borough/pkg/apis/tenancy"
	"github.com/borough-io/borough/pkg/apis/tenancy/install"
	"github.com/borough-io/borough/pkg/storage"
	"github.com/borough-io/borough/pkg/storage/embedded"
	"github.com/borough-io/borough/pkg/storage/embedded/embeddedtest"
	"github.com/borough-io/borough/pkg/storage/unreadable"
)

// SmallQuota is a limit for the size of a database that Fill reaches.
const SmallQuota = 16 << 20

// StartEmbedded starts an embedded member in a temporary directory. It stops with
// the test.
func StartEmbedded(t testing.TB, change ...func(*embedded.Config)) *embedded.Server {
	t.Helper()
	return embeddedtest.Start(t, change...)
}

// StartGRPC starts an etcd that is accessed over gRPC, like an external one, and
// returns its URL. It stops with the test.
func StartGRPC(t testing.TB, change ...func(*embed.Config)) string {
	t.Helper()
	anyPort := []url.URL{{Scheme: "http", Host: "127.0.0.1:0"}}
	config := embed.NewConfig()
	config.Dir = t.TempDir()
	config.ZapLoggerBuilder = embed.NewZapLoggerBuilder(zap.NewNop())
	config.TickMs, config.ElectionMs = 20, 100 // the member has no peers
	config.ListenPeerUrls = nil
	config.ListenClientUrls, config.AdvertiseClientUrls = anyPort, anyPort
	config.InitialCluster = config.InitialClusterFromName(config.Name)
	for _, c := range change {
		c(config)
	}
	etcd, err := embed.StartEtcd(config)
	if err != nil {
		t.Fatalf("start etcd: %v", err)
	}
	t.Cleanup(etcd.Close)
	select {
	case <-etcd.Server.ReadyNotify():
	case <-etcd.Server.StopNotify():
		t.Fatal("etcd stopped before it was ready")
	}
	return "http://" + etcd.Clients[0].Addr().String()
}

// NewClient returns a client of the etcd at an endpoint.
func NewClient(t testing.TB, endpoint string) *clientv3.Client {
	t.Helper()
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{endpoint}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	return client
}

// Fill fills an etcd that has SmallQuota, so that it rejects every put from then on.
func Fill(t testing.TB, client *clientv3.Client) {
	t.Helper()
	value := strings.Repeat("v", 1<<20)
	var endpoint string // none in-process
	if endpoints := client.Endpoints(); len(endpoints) > 0 {
		endpoint = endpoints[0]
	}
	for range 2 * SmallQuota / len(value) {
		_, err := client.Put(t.Context(), "/fill", value)
		if errors.Is(err, rpctypes.ErrNoSpace) {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		// etcd compares the size of the last commit, which is up to 100 ms old, and a
		// hash commits.
		if _, err := client.HashKV(t.Context(), endpoint, 0); err != nil {
			t.Fatal(err)
		}
	}
	t.Fatal("etcd accepts more than its quota")
}

// NewConfig returns a config for the resources of the group, stored in the embedded
// member or, if it is nil, in the servers of the options.
func NewConfig(member *embedded.Server) storage.Config {
	scheme := runtime.NewScheme()
	install.Install(scheme)
	return storage.Config{
		Scheme:     scheme,
		Embedded:   member,
		Namespaced: tenancy.GroupResources(tenancy.NamespacedKinds()),
		Unreadable: unreadable.NewObjects(),
	}
}

// NewStandaloneConfig returns a config that has the kinds of a standalone server, too.
func NewStandaloneConfig(member *embedded.Server) storage.Config {
	config := NewConfig(member)
	kubernetes.Install(config.Scheme)
	config.Namespaced = append(config.Namespaced, tenancy.GroupResources(kubernetes.NamespacedKinds())...)
	return config
}

// NewServerConfig returns a server config to which the options have been applied, and
// the backend.
func NewServerConfig(t testing.TB, options *storage.Options, config storage.Config) (*genericapiserver.Config, *storage.Backend) {
	t.Helper()
	c := genericapiserver.NewConfig(serializer.NewCodecFactory(config.Scheme))
	backend, err := options.ApplyTo(c, config)
	if err != nil {
		t.Fatal(err)
	}
	return c, backend
}

// NewBackend returns a backend without a server.
func NewBackend(t testing.TB, options *storage.Options, config storage.Config) *storage.Backend {
	t.Helper()
	_, backend := NewServerConfig(t, withoutPolling(options), config)
	return backend
}

// withoutPolling returns the options without health checks, which a server would stop, and
// without the metric that counts objects, which reads the storage of a store while a test
// replaces it.
func withoutPolling(options *storage.Options) *storage.Options {
	etcd := *options.Etcd
	etcd.SkipHealthEndpoints = true
	etcd.StorageConfig.CountMetricPollPeriod = 0
	return &storage.Options{Etcd: &etcd}
}
