// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

// Package storagetest starts etcd for tests.
package storagetest

import (
	"net"
	"net/url"
	"testing"

	"go.etcd.io/etcd/server/v3/embed"
	"go.uber.org/zap"

	genericapiserver "k8s.io/apiserver/pkg/server"

	"k8s.io/apimachinery/pkg/runtime/serializer"

	"github.com/borough-io/borough/pkg/storage"
	"github.com/borough-io/borough/pkg/storage/embedded"
)

// StartEmbedded starts an embedded member on a directory of its own, which ends
// with the test.
func StartEmbedded(t testing.TB) *embedded.Server {
	t.Helper()
	server, err := embedded.Start(t.Context(), embedded.Config{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.Close(); err != nil {
			t.Error(err)
		}
	})
	return server
}

// StartGRPC starts an etcd that is reached as an external one is, over gRPC. It
// returns its URL. It ends with the test.
func StartGRPC(t testing.TB) string {
	t.Helper()
	config := embed.NewConfig()
	config.Dir = t.TempDir()
	config.ZapLoggerBuilder = embed.NewZapLoggerBuilder(zap.NewNop())
	config.TickMs, config.ElectionMs = 10, 50
	address := freeAddress(t)
	config.ListenPeerUrls = nil
	config.ListenClientUrls = []url.URL{address}
	config.AdvertiseClientUrls = []url.URL{address}
	config.InitialCluster = config.InitialClusterFromName(config.Name)
	etcd, err := embed.StartEtcd(config)
	if err != nil {
		t.Fatalf("starting etcd at %s: %v", address.String(), err)
	}
	t.Cleanup(etcd.Close)
	select {
	case <-etcd.Server.ReadyNotify():
	case <-etcd.Server.StopNotify():
		t.Fatal("etcd stopped before it was ready")
	}
	return address.String()
}

// freeAddress returns the URL of a port that was free a moment ago; etcd takes
// no listener.
func freeAddress(t testing.TB) url.URL {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	return url.URL{Scheme: "http", Host: l.Addr().String()}
}

// NewServerConfig returns a server config to which the options have been
// applied, for tests of storage and registry without a server.
func NewServerConfig(t testing.TB, options *storage.Options, config storage.Config) *genericapiserver.Config {
	t.Helper()
	c := genericapiserver.NewConfig(serializer.NewCodecFactory(config.Scheme))
	if err := options.ApplyTo(c, config); err != nil {
		t.Fatal(err)
	}
	return c
}
