// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/client-go/rest"

	"github.com/borough-io/borough/pkg/delegation"
)

// network connects a client to a server in memory.
type network struct {
	dialed chan net.Conn
	closed chan struct{}
	close  func()
	ports  atomic.Int32
}

func newNetwork() *network {
	n := &network{dialed: make(chan net.Conn), closed: make(chan struct{})}
	n.close = sync.OnceFunc(func() { close(n.closed) })
	return n
}

func (n *network) Accept() (net.Conn, error) {
	select {
	case c := <-n.dialed:
		return c, nil
	case <-n.closed:
		return nil, net.ErrClosed
	}
}

func (n *network) Close() error {
	n.close()
	return nil
}

func (n *network) Addr() net.Addr { return &net.TCPAddr{Port: 443} }

func (n *network) dial() (net.Conn, error) {
	client, server := net.Pipe()
	select {
	case n.dialed <- server:
		return addressed{client, &net.TCPAddr{Port: int(n.ports.Add(1))}}, nil
	case <-n.closed:
		return nil, net.ErrClosed
	}
}

// addressed is a connection with an address of its own, which those of net.Pipe lack.
type addressed struct {
	net.Conn
	local net.Addr
}

func (a addressed) LocalAddr() net.Addr { return a.local }

// TestSlowCluster sends a review each second to a kube-apiserver that takes five seconds
// for each. Its connections do not stall, so no review is sent twice.
func TestSlowCluster(t *testing.T) {
	setHealthChecks()
	synctest.Test(t, testSlowCluster)
}

func testSlowCluster(t *testing.T) {
	var reviewed atomic.Int32
	network := newNetwork()
	cluster := &httptest.Server{
		Listener: network, EnableHTTP2: true,
		Config: &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
			reviewed.Add(1)
			var review authorizationv1.SubjectAccessReview
			if err := json.NewDecoder(req.Body).Decode(&review); err != nil {
				t.Error(err)
			}
			select {
			case <-time.After(5 * time.Second):
			case <-req.Context().Done():
				return
			}
			review.Status.Allowed = true
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusCreated)
			if err := json.NewEncoder(w).Encode(review); err != nil {
				t.Error(err)
			}
		})},
	}
	cluster.StartTLS()
	defer cluster.Close()
	a, err := delegation.AuthorizerConfig{
		Cluster: &rest.Config{
			Host: "https://example.com", TLSClientConfig: rest.TLSClientConfig{Insecure: true}, ContentConfig: rest.ContentConfig{ContentType: runtime.ContentTypeJSON},
			Dial: func(context.Context, string, string) (net.Conn, error) { return network.dial() },
		},
		AllowTTL: time.Hour, DenyTTL: time.Hour, Timeout: 10 * time.Second, Backoff: wait.Backoff{Steps: 1},
	}.NewAuthorizer()
	if err != nil {
		t.Fatal(err)
	}
	const reviews = 10
	var wg sync.WaitGroup
	for i := range reviews {
		wg.Go(func() {
			decision, _, err := a.Authorize(t.Context(), authorizer.AttributesRecord{
				User: &user.DefaultInfo{Name: "alice"}, Verb: "get", Resource: "pods", Name: fmt.Sprint(i), ResourceRequest: true,
			})
			if err != nil || decision != authorizer.DecisionAllow {
				t.Errorf("review %d: decision %v, error %v", i, decision, err)
			}
		})
		time.Sleep(time.Second)
	}
	wg.Wait()
	if n := reviewed.Load(); n != reviews {
		t.Errorf("%d reviews were sent %d times", reviews, n)
	}
}
