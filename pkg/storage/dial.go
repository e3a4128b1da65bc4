// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package storage

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"
	"sync"
	"time"

	grpcprom "github.com/grpc-ecosystem/go-grpc-middleware/providers/prometheus"
	"github.com/prometheus/client_golang/prometheus"
	"go.etcd.io/etcd/client/pkg/v3/transport"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/kubernetes"
	"go.opentelemetry.io/contrib/instrumentation/google.golang.org/grpc/otelgrpc"
	"google.golang.org/grpc"
	"google.golang.org/grpc/connectivity"

	"k8s.io/apiserver/pkg/server/egressselector"
	"k8s.io/apiserver/pkg/storage/storagebackend"
	"k8s.io/component-base/metrics/legacyregistry"
	"k8s.io/component-base/tracing"
	"k8s.io/klog/v2"

	"github.com/borough-io/borough/pkg/storage/internal/etcdlog"
)

// A member that hangs keeps its connections open, and the requests and watches on
// them wait until a keepalive fails. In the library's storage factory that takes
// 40 s. These are the shortest times that gRPC, and etcd by default, allow. The dial
// timeout is that of the library, long enough for TLS handshakes on a busy machine.
const (
	keepaliveTime    = 10 * time.Second
	keepaliveTimeout = 5 * time.Second
	dialTimeout      = 20 * time.Second
)

// dial connects to an external etcd cluster as the library does, and waits until
// the connection is ready.
func dial(t storagebackend.TransportConfig) (*kubernetes.Client, error) {
	tlsConfig, err := newTLSConfig(t)
	if err != nil {
		return nil, fmt.Errorf("reading the TLS files for etcd: %w", err)
	}
	options, err := newDialOptions(t)
	if err != nil {
		return nil, err
	}
	client, err := kubernetes.New(clientv3.Config{
		Endpoints:            t.ServerList,
		TLS:                  tlsConfig,
		DialTimeout:          dialTimeout,
		DialKeepAliveTime:    keepaliveTime,
		DialKeepAliveTimeout: keepaliveTimeout,
		DialOptions:          options,
		Logger:               etcdlog.New(klog.Background().WithName("etcd-client"), nil),
	})
	if err == nil {
		if err = waitReady(client.ActiveConnection()); err != nil {
			_ = client.Close()
		}
	}
	if err != nil {
		return nil, fmt.Errorf("connecting to etcd at %s: %w", strings.Join(t.ServerList, ", "), err)
	}
	return client, nil
}

// newTLSConfig returns nil, for a connection without TLS, if no file is given.
func newTLSConfig(t storagebackend.TransportConfig) (*tls.Config, error) {
	if t.CertFile == "" && t.KeyFile == "" && t.TrustedCAFile == "" {
		return nil, nil
	}
	return transport.TLSInfo{CertFile: t.CertFile, KeyFile: t.KeyFile, TrustedCAFile: t.TrustedCAFile}.ClientConfig()
}

func newDialOptions(t storagebackend.TransportConfig) ([]grpc.DialOption, error) {
	metrics, err := clientMetrics()
	if err != nil {
		return nil, err
	}
	options := []grpc.DialOption{
		// Chained after the interceptors of etcd's client, which retry, so that each
		// attempt is counted.
		grpc.WithChainUnaryInterceptor(metrics.UnaryClientInterceptor()),
		grpc.WithChainStreamInterceptor(metrics.StreamClientInterceptor()),
		grpc.WithStatsHandler(otelgrpc.NewClientHandler(
			otelgrpc.WithMessageEvents(otelgrpc.ReceivedEvents, otelgrpc.SentEvents),
			otelgrpc.WithPropagators(tracing.Propagators()),
			otelgrpc.WithTracerProvider(t.TracerProvider),
		)),
	}
	if t.EgressLookup == nil {
		return options, nil
	}
	egress, err := t.EgressLookup(egressselector.Etcd.AsNetworkContext())
	if err != nil {
		return nil, fmt.Errorf("looking up the egress dialer for etcd: %w", err)
	}
	if egress != nil {
		options = append(options, grpc.WithContextDialer(func(ctx context.Context, address string) (net.Conn, error) {
			if u, err := url.Parse(address); err == nil && u.Host != "" {
				address = u.Host
			}
			return egress(ctx, "tcp", address)
		}))
	}
	return options, nil
}

// clientMetrics returns the metrics of etcd's gRPC clients. The library registers
// the same metrics but does not export them.
var clientMetrics = sync.OnceValues(func() (*grpcprom.ClientMetrics, error) {
	metrics := grpcprom.NewClientMetrics()
	err := legacyregistry.Registerer().Register(metrics)
	var registered prometheus.AlreadyRegisteredError
	if errors.As(err, &registered) {
		if existing, ok := registered.ExistingCollector.(*grpcprom.ClientMetrics); ok {
			return existing, nil
		}
	}
	if err != nil {
		return nil, fmt.Errorf("registering the metrics of etcd's clients: %w", err)
	}
	return metrics, nil
})

func waitReady(conn *grpc.ClientConn) error {
	ctx, cancel := context.WithTimeout(context.Background(), dialTimeout)
	defer cancel()
	for {
		state := conn.GetState()
		switch state {
		case connectivity.Ready:
			return nil
		case connectivity.Idle:
			conn.Connect()
		}
		if !conn.WaitForStateChange(ctx, state) {
			return fmt.Errorf("no connection after %v: it is in state %s", dialTimeout, state)
		}
	}
}
