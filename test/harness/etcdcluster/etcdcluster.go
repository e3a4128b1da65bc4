// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

// Package etcdcluster starts an etcd of three members in the process of a test.
package etcdcluster

import (
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/embed"
	"go.uber.org/zap"

	"github.com/borough-io/borough/test/poll"
)

// Member is a member of an etcd that its peers reach through a proxy.
type Member struct {
	*embed.Etcd
	proxy *httptest.Server
	// address is that of the member for the proxy.
	address atomic.Pointer[url.URL]
}

// Cluster is an etcd of which one member can be isolated from the others, but not from
// clients.
type Cluster struct {
	Members []*Member
	// isolated is the ID of the member that is.
	isolated atomic.Pointer[string]
}

// Start starts three members, which stop with the test.
func Start(t *testing.T) *Cluster {
	c := &Cluster{}
	var peers []string
	for range 3 {
		m := &Member{}
		m.proxy = httptest.NewServer(c.forward(m))
		t.Cleanup(m.proxy.Close)
		peers = append(peers, m.proxy.URL+"="+m.proxy.URL) // the URL is the name
		c.Members = append(c.Members, m)
	}
	anyPort := []url.URL{{Scheme: "http", Host: "127.0.0.1:0"}}
	for _, m := range c.Members {
		config := embed.NewConfig()
		config.Name, config.Dir = m.proxy.URL, t.TempDir()
		config.ZapLoggerBuilder = embed.NewZapLoggerBuilder(zap.NewNop())
		config.UnsafeNoFsync = true
		config.TickMs, config.ElectionMs = 100, 2000 // on a busy machine, the heartbeats of a leader come late
		config.ListenPeerUrls, config.ListenClientUrls, config.AdvertiseClientUrls = anyPort, anyPort, anyPort
		advertised, err := url.Parse(m.proxy.URL)
		if err != nil {
			t.Fatal(err)
		}
		config.AdvertisePeerUrls = []url.URL{*advertised}
		config.InitialCluster = strings.Join(peers, ",")
		if m.Etcd, err = embed.StartEtcd(config); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(m.Close)
		m.address.Store(&url.URL{Scheme: "http", Host: m.Peers[0].Addr().String()})
	}
	for _, m := range c.Members {
		<-m.Server.ReadyNotify()
	}
	return c
}

// forward forwards the requests of peers to a member, except those from or to the one that
// is isolated.
func (c *Cluster) forward(to *Member) http.Handler {
	proxy := &httputil.ReverseProxy{
		Rewrite:       func(r *httputil.ProxyRequest) { r.SetURL(to.address.Load()) },
		FlushInterval: -1, // streams
		ErrorHandler:  func(w http.ResponseWriter, _ *http.Request, _ error) { w.WriteHeader(http.StatusBadGateway) },
	}
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		isolated := c.isolated.Load()
		from := req.Header.Get("X-Server-From")
		if to.address.Load() == nil || isolated != nil && (from == *isolated || from == "" || to.id() == *isolated) {
			w.WriteHeader(http.StatusBadGateway)
			return
		}
		proxy.ServeHTTP(w, req)
	})
}

func (m *Member) id() string { return m.Server.MemberID().String() }

// Isolate isolates a member.
func (c *Cluster) Isolate(m *Member) {
	id := m.id()
	c.isolated.Store(&id)
	for _, m := range c.Members {
		m.proxy.CloseClientConnections()
	}
}

// Join ends the isolation.
func (c *Cluster) Join() { c.isolated.Store(nil) }

// ClientURL returns the URL of the member for clients.
func (m *Member) ClientURL() string { return "http://" + m.Clients[0].Addr().String() }

// NewClient returns a client of some members, which the test closes.
func NewClient(t *testing.T, members ...*Member) *clientv3.Client {
	t.Helper()
	config := clientv3.Config{Logger: zap.NewNop()}
	for _, m := range members {
		config.Endpoints = append(config.Endpoints, m.ClientURL())
	}
	client, err := clientv3.New(config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	return client
}

// Put puts a value, also while the members elect a leader, and returns the
// revision.
func Put(t *testing.T, client *clientv3.Client, key, value string) (revision int64) {
	t.Helper()
	poll.Eventually(t, func() string {
		response, err := client.Put(t.Context(), key, value)
		if err != nil {
			return err.Error()
		}
		revision = response.Header.Revision
		return ""
	})
	return revision
}
