// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

// Package serving serves the health and the metrics of a controller.
package serving

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/net/netutil"
	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/legacyregistry"
)

// shutdownTimeout is how long a shutdown waits for responses in progress.
const shutdownTimeout = time.Second

// connectionLimits bound what clients that are not authenticated can occupy.
type connectionLimits struct {
	// connections is how many are open at the same time. Others wait.
	connections int
	// timeout is how long a connection may be idle, and how long a client may take
	// to send a request and to read the response.
	timeout time.Duration
}

var defaultLimits = connectionLimits{connections: 200, timeout: 10 * time.Second}

// NewHandler serves health and metrics. A process is ready if neither ready nor healthy
// returns an error. It must not depend on whether the process leads: a rollout that
// waited for a replica to lead would never complete.
func NewHandler(registry metrics.KubeRegistry, healthy, ready func() error) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /healthz", check(healthy))
	mux.Handle("GET /livez", check(healthy))
	mux.Handle("GET /readyz", check(func() error {
		if err := ready(); err != nil {
			return err
		}
		return healthy()
	}))
	mux.Handle("GET /metrics", metrics.HandlerFor(
		prometheus.Gatherers{legacyregistry.DefaultGatherer, registry},
		metrics.HandlerOpts{ErrorHandling: metrics.ContinueOnError},
	))
	return mux
}

func check(f func() error) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		if err := f(); err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
			return
		}
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		fmt.Fprint(w, "ok")
	}
}

// Listen listens on the address. It returns nil if the address is empty.
func Listen(address string) (net.Listener, error) {
	if address == "" {
		return nil, nil
	}
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return nil, fmt.Errorf("--%s: %w", addressFlag, err)
	}
	return listener, nil
}

// Serve serves until the context ends.
func Serve(ctx context.Context, listener net.Listener, handler http.Handler) error {
	return serve(ctx, listener, handler, defaultLimits)
}

func serve(ctx context.Context, listener net.Listener, handler http.Handler, limits connectionLimits) error {
	server := &http.Server{
		Handler:      handler,
		ReadTimeout:  limits.timeout,
		WriteTimeout: limits.timeout,
		IdleTimeout:  limits.timeout,
		BaseContext:  func(net.Listener) context.Context { return ctx },
	}
	failed := make(chan error, 1)
	go func() { failed <- server.Serve(netutil.LimitListener(listener, limits.connections)) }()
	select {
	case err := <-failed:
		return fmt.Errorf("serve on %s: %w", listener.Addr(), err)
	case <-ctx.Done():
	}
	stop, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownTimeout)
	defer cancel()
	if err := server.Shutdown(stop); err != nil {
		_ = server.Close() // closes the remaining connections
	}
	<-failed
	return nil
}
