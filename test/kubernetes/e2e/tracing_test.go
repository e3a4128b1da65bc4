// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"slices"
	"sync"
	"testing"

	collectorv1 "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	tracev1 "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/grpc"

	"github.com/borough-io/borough/test/harness"
	"github.com/borough-io/borough/test/poll"
)

// collector receives the spans of API servers (OTLP over gRPC).
type collector struct {
	collectorv1.UnimplementedTraceServiceServer
	server *grpc.Server

	mu    sync.Mutex
	spans []*tracev1.Span
}

// startCollector starts a collector and writes a tracing configuration with its
// endpoint.
func startCollector(configFile string) (*collector, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("listen for spans: %w", err)
	}
	// Without a samplingRatePerMillion a request is traced only if its caller's
	// span is sampled.
	config := fmt.Sprintf("apiVersion: apiserver.config.k8s.io/v1\nkind: TracingConfiguration\nendpoint: %s\n", listener.Addr())
	if err := os.WriteFile(configFile, []byte(config), 0o600); err != nil {
		return nil, fmt.Errorf("write the tracing configuration: %w", err)
	}
	c := &collector{server: grpc.NewServer()}
	collectorv1.RegisterTraceServiceServer(c.server, c)
	go func() { _ = c.server.Serve(listener) }() // ends with the server
	return c, nil
}

// Export implements collectorv1.TraceServiceServer.
func (c *collector) Export(_ context.Context, request *collectorv1.ExportTraceServiceRequest) (*collectorv1.ExportTraceServiceResponse, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, resource := range request.ResourceSpans {
		for _, scope := range resource.ScopeSpans {
			c.spans = append(c.spans, scope.Spans...)
		}
	}
	return &collectorv1.ExportTraceServiceResponse{}, nil
}

// trace returns the spans of a trace received so far.
func (c *collector) trace(id string) []*tracev1.Span {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(c.spans), func(s *tracev1.Span) bool { return hex.EncodeToString(s.TraceId) != id })
}

// callerSpan is the parent span of the test's requests.
const callerSpan = "00f067aa0ba902b7"

// path returns an empty string if the received spans of a trace include a path
// from the caller through spans of these names, perhaps with others in between.
func (c *collector) path(trace string, names ...string) (reason string) {
	spans := c.trace(trace)
	byID := map[string]*tracev1.Span{}
	for _, s := range spans {
		byID[string(s.SpanId)] = s
	}
	caller, _ := hex.DecodeString(callerSpan)
	var leaves []string
	for _, leaf := range spans {
		// Follow the parents from the leaf up to the caller.
		left, s, ok := names, leaf, leaf.Name == names[len(names)-1]
		for ok && string(s.ParentSpanId) != string(caller) {
			if len(left) > 0 && s.Name == left[len(left)-1] {
				left = left[:len(left)-1]
			}
			s, ok = byID[string(s.ParentSpanId)]
		}
		if ok && len(left) == 1 && s.Name == left[0] {
			return ""
		}
		leaves = append(leaves, leaf.Name)
	}
	return fmt.Sprintf("the trace does not lead through %q; its spans are %q", names, leaves)
}

// TestTracing follows requests from kube-apiserver through our server to etcd,
// to a webhook, and to our server itself, when its admission gets a Namespace
// that is not in its cache.
func TestTracing(t *testing.T) {
	t.Parallel()
	team := newName("team")
	namespace, _ := newTeamNamespaces(t, team)
	registerValidating(t, newWebhook(t, denyMarked), team, []string{"pods"})
	awaitDenied(t, cluster.BoroughClient(t), namespace)
	api := harness.NewHTTP(t, cluster.AdminConfig())
	create := func(namespace string, want int) (trace string) {
		t.Helper()
		trace = fmt.Sprintf("%016x%016x", rand.Uint64(), rand.Uint64())
		answer := api.Do(t, http.MethodPost, "/apis/tenancy.borough.io/v1/namespaces/"+namespace+"/pods",
			fmt.Appendf(nil, podManifest, "example.com/web:1"),
			"Content-Type", "application/yaml", "Traceparent", "00-"+trace+"-"+callerSpan+"-01")
		if answer.Code != want {
			t.Fatalf("create a Pod: got %v, want %d", answer, want)
		}
		return trace
	}
	created, rejected := create(namespace, http.StatusCreated), create("nowhere", http.StatusNotFound)

	const (
		post = "POST /apis/tenancy.borough.io/v1/namespaces/{:namespace}/pods"
		get  = "GET /apis/tenancy.borough.io/v1/namespaces/{:namespace}/namespaces/{:name}"
	)
	for _, tc := range []struct {
		trace string
		path  []string
	}{
		{created, []string{post, "HTTP POST", post, "Create", "Create etcd3", "etcdserverpb.KV/Txn"}},
		{created, []string{post, "HTTP POST", post, "HTTP POST"}},
		{rejected, []string{post, "HTTP POST", post, "HTTP GET", get, "Get etcd3", "etcdserverpb.KV/Range"}},
	} {
		poll.Eventually(t, func() string { return spans.path(tc.trace, tc.path...) })
	}
}
