// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package storage

import (
	"fmt"
	"strings"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/kubernetes"

	"k8s.io/apiserver/pkg/storage/etcd3"
	"k8s.io/apiserver/pkg/storage/storagebackend"
	"k8s.io/utils/clock"

	"github.com/borough-io/borough/pkg/await"
	"github.com/borough-io/borough/pkg/storage/embedded"
	"github.com/borough-io/borough/pkg/storage/internal/balancer"
)

// connections creates the clients and compactors for all stores of a server. A
// transport without servers stands for the embedded member.
type connections struct {
	embedded *embedded.Server

	mu         sync.Mutex
	compactors map[string]*sharedCompactor

	leaders sync.Map // of *balancer.Leader, with the keys of compactors

	// reached is the latest revision in a response of etcd to a read or transaction of this
	// server. The compactor of each server asks etcd as often as one of them compacts, and then
	// up to the revision of the time before. So etcd has the history after it, also for a server
	// that gets no requests.
	reached await.Revision
}

func newConnections(member *embedded.Server) *connections {
	return &connections{embedded: member, compactors: map[string]*sharedCompactor{}}
}

// clusterKey returns the key of an etcd cluster in the maps.
func clusterKey(transport storagebackend.TransportConfig) string {
	return strings.Join(transport.ServerList, ",")
}

// client returns a new client, which the caller must close.
func (c *connections) client(transport storagebackend.TransportConfig) (*kubernetes.Client, error) {
	var client *kubernetes.Client
	if len(transport.ServerList) == 0 {
		client = kubernetesClient(c.embedded.Client())
	} else {
		var err error
		if client, err = dial(transport, c.leader(transport)); err != nil {
			return nil, err
		}
	}
	client.KV = observedKV{client.KV, &c.reached}
	return client, nil
}

// leader returns what all clients of an etcd cluster know of its leader.
func (c *connections) leader(transport storagebackend.TransportConfig) *balancer.Leader {
	leader, _ := c.leaders.LoadOrStore(clusterKey(transport), balancer.NewLeader())
	return leader.(*balancer.Leader)
}

// kubernetesClient does the same as kubernetes.New for an existing client.
func kubernetesClient(c *clientv3.Client) *kubernetes.Client {
	client := &kubernetes.Client{Client: c}
	client.Kubernetes = client
	return client
}

// sharedCompactor is the compactor that all stores on an etcd cluster share.
type sharedCompactor struct {
	etcd3.Compactor
	users int
	stop  func()
}

// compactor returns the compactor of the transport, which it starts on first use,
// and a function that each user calls when it is done. The compactor is nil if the
// interval is 0.
func (c *connections) compactor(transport storagebackend.TransportConfig, interval time.Duration) (etcd3.Compactor, func(), error) {
	if interval == 0 {
		return nil, func() {}, nil
	}
	key := clusterKey(transport)
	c.mu.Lock()
	defer c.mu.Unlock()
	shared := c.compactors[key]
	if shared == nil {
		client, err := c.client(transport)
		if err != nil {
			return nil, nil, fmt.Errorf("connect the compactor: %w", err)
		}
		compactor := etcd3.NewCompactor(client.Client, interval, clock.RealClock{}, nil)
		shared = &sharedCompactor{Compactor: compactor, stop: func() {
			compactor.Stop()
			_ = client.Close()
		}}
		c.compactors[key] = shared
	}
	shared.users++
	return shared.Compactor, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		if shared.users--; shared.users == 0 {
			delete(c.compactors, key)
			shared.stop()
		}
	}, nil
}
