// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package storage

import (
	"context"
	"fmt"
	"net/http"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/version"
	clientv3 "go.etcd.io/etcd/client/v3"
	"golang.org/x/sync/singleflight"
	"google.golang.org/grpc"

	"k8s.io/apiserver/pkg/server/healthz"
	"k8s.io/apiserver/pkg/server/options"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/apiserver/pkg/storage/etcd3/metrics"
	"k8s.io/apiserver/pkg/storage/feature"
	"k8s.io/apiserver/pkg/storage/storagebackend"

	"github.com/borough-io/borough/pkg/await"
	"github.com/borough-io/borough/pkg/storage/embedded"
	"github.com/borough-io/borough/pkg/storage/internal/unanswered"
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

	// reached is met when the cluster has answered for the first time.
	reached *await.Condition
}

func newCluster(name, prefix string) *cluster {
	return &cluster{name: name, key: path.Join("/", prefix, "health"), reached: await.NewCondition("etcd")}
}

// embeddedCluster returns the embedded member.
func embeddedCluster(server *embedded.Server, prefix string) *cluster {
	c := newCluster("the embedded etcd", prefix)
	client := server.Client()
	c.client = func() (*clientv3.Client, error) { return client, nil }
	c.status = server.Status
	// Consistent reads from the watch cache need progress requests for watches. The
	// library checks for support at the endpoints of a client, and this one has none.
	feature.DefaultFeatureSupportChecker.CheckClient(context.Background(), linkedEtcd{}, storage.RequestWatchProgress)
	return c
}

// linkedEtcd answers the library's check with the version of etcd in the binary. A check of
// the member would log an error if the start fails at the same time.
type linkedEtcd struct{}

func (linkedEtcd) Endpoints() []string { return []string{"embedded"} }

func (linkedEtcd) Status(context.Context, string) (*clientv3.StatusResponse, error) {
	return &clientv3.StatusResponse{Version: version.Version}, nil
}

// clusters are the clusters that a server stores objects in: that of --etcd-servers,
// followed by those of --etcd-servers-overrides.
type clusters []*cluster

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
		if slices.ContainsFunc(cs, func(c *cluster) bool { return sameServers(c.servers, config.Transport.ServerList) }) {
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
	clientConfig, err := probeConfig(config.Transport)
	if err != nil {
		return nil, err
	}
	c.client = sync.OnceValues(func() (*clientv3.Client, error) { return clientv3.New(clientConfig) })
	c.status = func(ctx context.Context) (*clientv3.StatusResponse, error) {
		client, err := c.client()
		if err != nil {
			return nil, err
		}
		return memberStatus(ctx, client)
	}
	return c, nil
}

// memberStatus returns the status of one of the members that a client is connected to.
// client.Status would connect to a given one, which can be down.
func memberStatus(ctx context.Context, client *clientv3.Client) (*clientv3.StatusResponse, error) {
	status, err := pb.NewMaintenanceClient(client.ActiveConnection()).Status(ctx, &pb.StatusRequest{})
	return (*clientv3.StatusResponse)(status), err
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
		return unanswered.Hedge(ctx, timeout/2, func(ctx context.Context) (any, error) {
			return client.Get(ctx, c.key)
		})
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

// await probes the cluster until it answers for the first time.
func (c *cluster) await(ctx context.Context, timeout time.Duration) {
	c.reached.Await(ctx, func(ctx context.Context) error { return c.probe(ctx, timeout) })
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
		if c.reached.Check() == nil {
			return nil
		}
		err := c.probe(r.Context(), timeout)
		if err == nil {
			c.reached.Meet()
		}
		return err
	})
}

// Monitor implements metrics.Monitor.
func (c *cluster) Monitor(ctx context.Context) (metrics.StorageMetrics, error) {
	status, err := c.status(ctx)
	if err != nil {
		return metrics.StorageMetrics{}, fmt.Errorf("get the status of %s: %w", c.name, err)
	}
	return metrics.StorageMetrics{Size: status.DbSize}, nil
}

// Close implements metrics.Monitor. The client is closed with the server.
func (c *cluster) Close() error { return nil }
