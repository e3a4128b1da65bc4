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
	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/legacyregistry"
)

const (
	// readHeaderTimeout closes connections of clients that send nothing.
	readHeaderTimeout = 10 * time.Second
	// shutdownTimeout is how long a shutdown waits for responses in progress.
	shutdownTimeout = time.Second
)

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
func serve(ctx context.Context, listener net.Listener, handler http.Handler) error {
	server := &http.Server{
		Handler:           handler,
		ReadHeaderTimeout: readHeaderTimeout,
		BaseContext:       func(net.Listener) context.Context { return ctx },
	}
	failed := make(chan error, 1)
	go func() { failed <- server.Serve(listener) }()
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
