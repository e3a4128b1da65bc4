// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"errors"
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

// newHandler serves health and metrics. The process is ready when its informers
// have synced, whether it leads or not: a rollout that waited for a replica to lead
// would never complete.
func newHandler(registry metrics.KubeRegistry, healthy func() error, synced func() bool) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /healthz", check(healthy))
	mux.Handle("GET /livez", check(healthy))
	mux.Handle("GET /readyz", check(func() error {
		if !synced() {
			return errors.New("the namespace informer has not synced yet")
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

// serve serves until the context ends.
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
