// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package storage

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/kubernetes"

	"k8s.io/apiserver/pkg/storage/etcd3"
	"k8s.io/apiserver/pkg/storage/storagebackend"

	"github.com/borough-io/borough/pkg/await"
	"github.com/borough-io/borough/pkg/storage/compaction"
	"github.com/borough-io/borough/pkg/storage/embedded"
	"github.com/borough-io/borough/pkg/storage/internal/balancer"
)

// connections creates the clients and compactors for all stores of a server. A
// transport without servers stands for the embedded member.
type connections struct {
	embedded *embedded.Server
	shared   sync.Map // of *shared, by the key of the etcd cluster

	mu         sync.Mutex
	compactors map[string]*runningCompactor // by the same keys

	// reached is the latest revision in a response of etcd to a read or transaction of this
	// server. The compactor of each server asks etcd as often as one of them compacts, and then
	// up to the revision of the time before. So etcd has the history after it, also for a server
	// that gets no requests, unless another one compacts early.
	reached await.Revision
}

// shared is what all clients of an etcd cluster share.
type shared struct {
	leader  *balancer.Leader // what they know of the leader
	written *compaction.Meter
}

func newConnections(member *embedded.Server) *connections {
	return &connections{embedded: member, compactors: map[string]*runningCompactor{}}
}

// clusterKey returns the key of an etcd cluster in the maps.
func clusterKey(transport storagebackend.TransportConfig) string {
	return strings.Join(transport.ServerList, ",")
}

func (c *connections) sharedOf(transport storagebackend.TransportConfig) *shared {
	s, _ := c.shared.LoadOrStore(clusterKey(transport), &shared{balancer.NewLeader(), compaction.NewMeter()})
	return s.(*shared)
}

// client returns a new client, which the caller must close.
func (c *connections) client(transport storagebackend.TransportConfig) (*kubernetes.Client, error) {
	shared := c.sharedOf(transport)
	var client *kubernetes.Client
	if len(transport.ServerList) == 0 {
		client = kubernetesClient(c.embedded.Client())
	} else {
		var err error
		if client, err = dial(transport, shared.leader); err != nil {
			return nil, err
		}
	}
	client.KV = observedKV{client.KV, &c.reached, shared.written}
	return client, nil
}

// kubernetesClient does the same as kubernetes.New for an existing client.
func kubernetesClient(c *clientv3.Client) *kubernetes.Client {
	client := &kubernetes.Client{Client: c}
	client.Kubernetes = client
	return client
}

// runningCompactor is the compactor of an etcd cluster, for all stores on it.
type runningCompactor struct {
	*compaction.Compactor
	users int
	stop  func()
}

// compactor returns the compactor of the etcd cluster of the transport, which runs from the first
// call until all callers have called the function that it returns. It is nil if the interval is 0.
func (c *connections) compactor(transport storagebackend.TransportConfig, interval time.Duration) (_ etcd3.Compactor, stop func(), err error) {
	if interval == 0 {
		return nil, func() {}, nil
	}
	key := clusterKey(transport)
	c.mu.Lock()
	defer c.mu.Unlock()
	running := c.compactors[key]
	if running == nil {
		if running, err = c.startCompactor(transport, interval); err != nil {
			return nil, nil, fmt.Errorf("connect the compactor: %w", err)
		}
		c.compactors[key] = running
	}
	running.users++
	return running, func() {
		c.mu.Lock()
		running.users--
		last := running.users == 0
		if last {
			delete(c.compactors, key)
		}
		c.mu.Unlock()
		if last { // without the lock: etcd may be compacting
			running.stop()
		}
	}, nil
}

func (c *connections) startCompactor(transport storagebackend.TransportConfig, interval time.Duration) (*runningCompactor, error) {
	client, err := c.client(transport)
	if err != nil {
		return nil, err
	}
	status := c.embedded.Status
	if len(transport.ServerList) > 0 {
		status = func(ctx context.Context) (*clientv3.StatusResponse, error) { return memberStatus(ctx, client.Client) }
	}
	compactor := compaction.New(compaction.Config{
		Client:   client.Client,
		Status:   status,
		Meter:    c.sharedOf(transport).written,
		Interval: interval,
	})
	ctx, cancel := context.WithCancel(client.Ctx())
	var wg sync.WaitGroup
	wg.Go(func() { compactor.Run(ctx) })
	return &runningCompactor{Compactor: compactor, stop: func() {
		cancel()
		wg.Wait()
		_ = client.Close()
	}}, nil
}
