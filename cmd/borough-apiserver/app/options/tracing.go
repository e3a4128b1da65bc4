// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package options

import (
	"context"
	"time"

	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/component-base/tracing"
)

// spansTimeout is how long a server that shuts down waits for the collector of its spans.
const spansTimeout = 3 * time.Second

// applyTracing configures the spans of the server.
func (o *Options) applyTracing(generic *genericapiserver.Config) error {
	if err := o.Traces.ApplyTo(generic.EgressSelector, generic); err != nil {
		return err
	}
	generic.TracerProvider = boundedTracerProvider{generic.TracerProvider}
	return nil
}

// boundedTracerProvider does not wait for longer than spansTimeout until its spans are sent.
// The library waits until the exporter has tried each batch for ten seconds.
type boundedTracerProvider struct{ tracing.TracerProvider }

func (p boundedTracerProvider) Shutdown(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, spansTimeout)
	defer cancel()
	return p.TracerProvider.Shutdown(ctx)
}
