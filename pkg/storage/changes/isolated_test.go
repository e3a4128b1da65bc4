// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package changes_test

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

// member is a member of an etcd that its peers reach through a proxy.
type member struct {
	*embed.Etcd
	proxy *httptest.Server
	// address is that of the member for the proxy.
	address atomic.Pointer[url.URL]
}

// cluster is an etcd of which one member can be isolated from the others, but not from
// clients.
type cluster struct {
	members []*member
	// isolated is the ID of the member that is.
	isolated atomic.Pointer[string]
}

func startCluster(t *testing.T) *cluster {
	c := &cluster{}
	var peers []string
	for range 3 {
		m := &member{}
		m.proxy = httptest.NewServer(c.forward(m))
		t.Cleanup(m.proxy.Close)
		peers = append(peers, m.proxy.URL+"="+m.proxy.URL) // the URL is the name
		c.members = append(c.members, m)
	}
	anyPort := []url.URL{{Scheme: "http", Host: "127.0.0.1:0"}}
	for _, m := range c.members {
		config := embed.NewConfig()
		config.Name, config.Dir = m.proxy.URL, t.TempDir()
		config.ZapLoggerBuilder = embed.NewZapLoggerBuilder(zap.NewNop())
		config.TickMs, config.ElectionMs = 50, 500
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
	for _, m := range c.members {
		<-m.Server.ReadyNotify()
	}
	return c
}

// forward forwards the requests of peers to a member, except those from or to the one that
// is isolated.
func (c *cluster) forward(to *member) http.Handler {
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

func (m *member) id() string { return m.Server.MemberID().String() }

// isolate isolates a member.
func (c *cluster) isolate(m *member) {
	id := m.id()
	c.isolated.Store(&id)
	for _, m := range c.members {
		m.proxy.CloseClientConnections()
	}
}

func (m *member) clientURL() string { return "http://" + m.Clients[0].Addr().String() }

func newClient(t *testing.T, members ...*member) *clientv3.Client {
	t.Helper()
	config := clientv3.Config{Logger: zap.NewNop()}
	for _, m := range members {
		config.Endpoints = append(config.Endpoints, m.clientURL())
	}
	client, err := clientv3.New(config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	return client
}

// TestIsolatedMember isolates the member that the feed watches. It answers the client, but
// does not get what the others write: the feed has to leave it.
func TestIsolatedMember(t *testing.T) {
	t.Parallel() // it waits for elections
	etcd := startCluster(t)
	isolated, others := etcd.members[0], etcd.members[1:]
	client, writer := newClient(t, isolated), newClient(t, others...)
	putEventually(t, writer, "/r/a/n/x", "1")
	feed, lines := newFeed(client)
	run(t, feed)
	begin := <-lines
	if !strings.HasPrefix(begin, "reset") {
		t.Fatalf("got %s, want the objects", begin)
	}
	client.SetEndpoints(isolated.clientURL(), others[0].clientURL(), others[1].clientURL())

	etcd.isolate(isolated)
	revision := putEventually(t, writer, "/r/a/n/x", "2")
	want(t, lines, "apply %d: a n/x@%d=2", revision, revision)
}

// putEventually puts a value, also while the members elect a leader, and returns the
// revision.
func putEventually(t *testing.T, client *clientv3.Client, key, value string) (revision int64) {
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
