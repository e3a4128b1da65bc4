// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package storage

import (
	"context"
	"crypto/tls"
	"encoding/pem"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	grpcprom "github.com/grpc-ecosystem/go-grpc-middleware/providers/prometheus"
	"github.com/prometheus/client_golang/prometheus"
	"go.etcd.io/etcd/client/pkg/v3/transport"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/kubernetes"
	"go.opentelemetry.io/contrib/instrumentation/google.golang.org/grpc/otelgrpc"
	"go.uber.org/zap/zapgrpc"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/grpclog"

	"k8s.io/apiserver/pkg/server/egressselector"
	"k8s.io/apiserver/pkg/storage/storagebackend"
	"k8s.io/component-base/metrics/legacyregistry"
	"k8s.io/component-base/tracing"
	"k8s.io/klog/v2"

	"github.com/borough-io/borough/pkg/storage/internal/balancer"
	"github.com/borough-io/borough/pkg/storage/internal/etcdlog"
)

// quiet is the level for what is reported in other ways.
var quiet atomic.Bool

func init() { quiet.Store(true) }

// SetGRPCLogger makes gRPC write its log with klog, at the verbosity 4: it logs each attempt of
// each client to connect. Calls return the same reasons, and the server logs the one that it
// waits for. It is for the init function of a command: the log is that of the whole process.
func SetGRPCLogger() {
	grpclog.SetLoggerV2(zapgrpc.NewLogger(etcdlog.New(klog.Background().WithName("grpc"), &quiet)))
}

const (
	// A member that hangs keeps its connections open, and the requests and watches on
	// them wait until a keepalive fails. In the library's storage factory that takes
	// 40 s. These are the shortest times that gRPC, and etcd by default, allow.
	keepaliveTime    = 10 * time.Second
	keepaliveTimeout = 5 * time.Second
	// connectTimeout is that of the library, long enough for TLS handshakes on a busy
	// machine.
	connectTimeout = 20 * time.Second
	// maxReconnectDelay bounds how long a client does not notice that etcd is back. By
	// default it is two minutes.
	maxReconnectDelay = time.Second
)

// dial returns a client for stores. It connects in the background, and its calls wait
// until there is a connection.
func dial(t storagebackend.TransportConfig, leader *balancer.Leader) (*kubernetes.Client, error) {
	config, err := newClientConfig(t)
	if err != nil {
		return nil, err
	}
	config.DialOptions = append(config.DialOptions, leader.DialOptions()...)
	client, err := kubernetes.New(config)
	if err != nil {
		return nil, fmt.Errorf("create a client of etcd at %s: %w", strings.Join(t.ServerList, ", "), err)
	}
	return client, nil
}

// probeConfig returns the config of a client for health checks. If there is no
// connection, its calls fail with the reason.
func probeConfig(t storagebackend.TransportConfig) (clientv3.Config, error) {
	config, err := newClientConfig(t)
	if err != nil {
		return clientv3.Config{}, err
	}
	config.MaxUnaryRetries = 1
	config.DialOptions = append(config.DialOptions, grpc.WithChainUnaryInterceptor(failFast))
	config.Logger = etcdlog.New(klog.Background().WithName("etcd-client"), &quiet)
	return config, nil
}

// newClientConfig returns the config of a client of an external etcd cluster. Apart
// from the times, it is that of the library.
func newClientConfig(t storagebackend.TransportConfig) (clientv3.Config, error) {
	tlsConfig, err := newTLSConfig(t)
	if err != nil {
		return clientv3.Config{}, fmt.Errorf("read the TLS files for etcd: %w", err)
	}
	options, err := newDialOptions(t)
	if err != nil {
		return clientv3.Config{}, err
	}
	return clientv3.Config{
		Endpoints:            t.ServerList,
		TLS:                  tlsConfig,
		DialKeepAliveTime:    keepaliveTime,
		DialKeepAliveTimeout: keepaliveTimeout,
		DialOptions:          options,
		Logger:               etcdlog.New(klog.Background().WithName("etcd-client"), nil),
	}, nil
}

// newTLSConfig returns nil, for a connection without TLS, if no file is given.
func newTLSConfig(t storagebackend.TransportConfig) (*tls.Config, error) {
	if t.CertFile == "" && t.KeyFile == "" && t.TrustedCAFile == "" {
		return nil, nil
	}
	if t.TrustedCAFile != "" {
		// etcd's client ignores what is not PEM, and would trust no server.
		content, err := os.ReadFile(t.TrustedCAFile)
		if err != nil {
			return nil, fmt.Errorf("--etcd-cafile: %w", err)
		}
		if block, _ := pem.Decode(content); block == nil {
			return nil, fmt.Errorf("--etcd-cafile=%s: it has no certificate in PEM", t.TrustedCAFile)
		}
	}
	return transport.TLSInfo{CertFile: t.CertFile, KeyFile: t.KeyFile, TrustedCAFile: t.TrustedCAFile}.ClientConfig()
}

func newDialOptions(t storagebackend.TransportConfig) ([]grpc.DialOption, error) {
	metrics, err := clientMetrics()
	if err != nil {
		return nil, err
	}
	reconnect := backoff.DefaultConfig
	reconnect.BaseDelay, reconnect.MaxDelay = maxReconnectDelay/10, maxReconnectDelay
	options := []grpc.DialOption{
		grpc.WithConnectParams(grpc.ConnectParams{Backoff: reconnect, MinConnectTimeout: connectTimeout}),
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
		return nil, fmt.Errorf("look up the egress dialer for etcd: %w", err)
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
		return nil, fmt.Errorf("register the metrics of etcd's clients: %w", err)
	}
	return metrics, nil
})
