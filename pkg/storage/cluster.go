// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package storage

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"path"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"golang.org/x/sync/singleflight"
	"google.golang.org/grpc"

	"k8s.io/apiserver/pkg/server/healthz"
	"k8s.io/apiserver/pkg/server/options"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/apiserver/pkg/storage/etcd3/metrics"
	"k8s.io/apiserver/pkg/storage/feature"
	"k8s.io/apiserver/pkg/storage/storagebackend"
	"k8s.io/klog/v2"

	"github.com/borough-io/borough/pkg/storage/embedded"
)

const (
	// awaitInterval is how often a cluster that has not answered is probed, and
	// awaitLogInterval how often that is logged.
	awaitInterval    = time.Second
	awaitLogInterval = 30 * time.Second
)

// cluster is an etcd cluster, or the embedded member, as seen by health checks and
// metrics.
type cluster struct {
	name    string   // in messages
	servers []string // none for the embedded member
	client  func() (*clientv3.Client, error)
	status  func(context.Context) (*clientv3.StatusResponse, error)
	key     string // that probes read; it need not exist
	probes  singleflight.Group

	// reached says that the cluster has answered a read or a write.
	reached atomic.Bool
}

func newCluster(name, prefix string) *cluster {
	return &cluster{name: name, key: path.Join("/", prefix, "health")}
}

// embeddedCluster returns the embedded member, which answers once it has started.
func embeddedCluster(server *embedded.Server, prefix string) *cluster {
	c := newCluster("the embedded etcd", prefix)
	client := server.Client()
	c.client = func() (*clientv3.Client, error) { return client, nil }
	c.status = server.Status
	c.reached.Store(true)
	// Consistent reads from the watch cache need progress requests for watches. The
	// library checks for support at the endpoints of a client, and this one has none.
	feature.DefaultFeatureSupportChecker.CheckClient(client.Ctx(), c, storage.RequestWatchProgress)
	return c
}

// clusters are the clusters that a server stores objects in: that of --etcd-servers,
// followed by those of --etcd-servers-overrides.
type clusters []*cluster

// of returns the cluster with the servers, in any order. No servers stand for the
// embedded member.
func (cs clusters) of(servers []string) *cluster {
	for _, c := range cs {
		if sameServers(c.servers, servers) {
			return c
		}
	}
	return nil
}

func sameServers(a, b []string) bool {
	return slices.Equal(slices.Sorted(slices.Values(a)), slices.Sorted(slices.Values(b)))
}

func (cs clusters) monitors() ([]metrics.Monitor, error) {
	monitors := make([]metrics.Monitor, 0, len(cs))
	for _, c := range cs {
		monitors = append(monitors, c)
	}
	return monitors, nil
}

// close closes the clients. The embedded member closes its own.
func (cs clusters) close() {
	for _, c := range cs {
		if client, err := c.client(); err == nil && len(c.servers) > 0 {
			_ = client.Close()
		}
	}
}

// newClusters returns the clusters of the options. They connect when they are first
// used, and must be closed then.
func newClusters(etcd *options.EtcdOptions, member *embedded.Server) (clusters, error) {
	if member != nil {
		return clusters{embeddedCluster(member, etcd.StorageConfig.Prefix)}, nil
	}
	overrides, err := options.ParseEtcdServersOverrides(etcd.EtcdServersOverrides)
	if err != nil {
		return nil, err
	}
	var cs clusters
	config := etcd.StorageConfig
	for i := -1; i < len(overrides); i++ {
		if i >= 0 {
			config.Transport.ServerList = overrides[i].Servers
		}
		if cs.of(config.Transport.ServerList) != nil {
			continue
		}
		c, err := externalCluster(config)
		if err != nil {
			return nil, err
		}
		cs = append(cs, c)
	}
	return cs, nil
}

// externalCluster returns the cluster at the servers of the config.
func externalCluster(config storagebackend.Config) (*cluster, error) {
	servers := config.Transport.ServerList
	c := newCluster("etcd at "+strings.Join(servers, ", "), config.Prefix)
	c.servers = servers
	clientConfig, err := probeConfig(config.Transport, c)
	if err != nil {
		return nil, err
	}
	c.client = sync.OnceValues(func() (*clientv3.Client, error) { return clientv3.New(clientConfig) })
	c.status = func(ctx context.Context) (*clientv3.StatusResponse, error) {
		client, err := c.client()
		if err != nil {
			return nil, err
		}
		return client.Status(ctx, servers[rand.IntN(len(servers))])
	}
	return c, nil
}

// observe notes the first answer to a read or a write. It intercepts the calls of
// every client.
func (c *cluster) observe(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
	err := invoke(ctx, method, req, reply, cc, opts...)
	// A member without a leader answers other calls.
	if err == nil && strings.HasPrefix(method, "/etcdserverpb.KV/") {
		c.reached.Store(true)
	}
	return err
}

// failFast intercepts the calls of probes, which fail with the reason if there is no
// connection. Those of stores wait for one, so watch caches are filled at once when
// there is one.
func failFast(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
	return invoke(ctx, method, req, reply, cc, append(opts[:len(opts):len(opts)], grpc.WaitForReady(false))...)
}

// probe reads from the cluster. Simultaneous probes with the same timeout are one.
func (c *cluster) probe(ctx context.Context, timeout time.Duration) error {
	result := c.probes.DoChan(timeout.String(), func() (any, error) {
		client, err := c.client()
		if err != nil {
			return nil, err
		}
		ctx, cancel := context.WithTimeout(client.Ctx(), timeout)
		defer cancel()
		_, err = client.Get(ctx, c.key)
		return nil, err
	})
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case r := <-result:
		if r.Err != nil {
			return fmt.Errorf("%s does not answer: %w", c.name, r.Err)
		}
		return nil
	}
}

// await probes the cluster until it answers for the first time, and logs what it
// waits for.
func (c *cluster) await(ctx context.Context, timeout time.Duration) {
	logger := klog.FromContext(ctx)
	var began, logged time.Time
	for {
		err := c.probe(ctx, timeout)
		switch {
		case ctx.Err() != nil:
			return
		case err == nil:
			if !began.IsZero() {
				logger.Info("Reached etcd", "etcd", c.name, "waited", time.Since(began).Round(time.Second))
			}
			return
		case began.IsZero():
			began = time.Now()
		}
		if time.Since(logged) >= awaitLogInterval {
			logger.Info("Waiting for etcd; the server is not ready before it has answered", "reason", err)
			logged = time.Now()
		}
		timer := time.NewTimer(awaitInterval)
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-timer.C:
		}
	}
}

// check returns a check that probes the cluster.
func (c *cluster) check(name, group string, timeout time.Duration) healthz.HealthChecker {
	return healthz.NamedGroupedCheck(name, group, func(r *http.Request) error {
		return c.probe(r.Context(), timeout)
	})
}

// checkReached returns a check that fails until the cluster has answered for the
// first time.
func (c *cluster) checkReached(name, group string, timeout time.Duration) healthz.HealthChecker {
	return healthz.NamedGroupedCheck(name, group, func(r *http.Request) error {
		if c.reached.Load() {
			return nil
		}
		return c.probe(r.Context(), timeout)
	})
}

// Monitor implements metrics.Monitor.
func (c *cluster) Monitor(ctx context.Context) (metrics.StorageMetrics, error) {
	status, err := c.status(ctx)
	if err != nil {
		return metrics.StorageMetrics{}, fmt.Errorf("getting the status of %s: %w", c.name, err)
	}
	return metrics.StorageMetrics{Size: status.DbSize}, nil
}

// Close implements metrics.Monitor. The client is closed with the server.
func (c *cluster) Close() error { return nil }

// Endpoints and Status are what the library's feature checker calls; any endpoint
// stands for the cluster.
func (c *cluster) Endpoints() []string { return []string{c.name} }

func (c *cluster) Status(ctx context.Context, _ string) (*clientv3.StatusResponse, error) {
	return c.status(ctx)
}
