// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"

	"k8s.io/client-go/rest"

	"github.com/borough-io/borough/test/harness"
	"github.com/borough-io/borough/test/harness/tcpproxy"
	"github.com/borough-io/borough/test/kubernetes/testcluster"
	"github.com/borough-io/borough/test/poll"
)

// proxied is a server that reaches the cluster through a proxy, and is not a backend
// of the Service.
type proxied struct {
	cluster *tcpproxy.Proxy
	server  *harness.Process
	host    string
}

// startProxied starts a server, after prepare has been called with the proxy, and
// returns when the path returns 200.
func startProxied(t *testing.T, path string, prepare func(*tcpproxy.Proxy)) *proxied {
	t.Helper()
	account, err := cluster.ServiceAccountConfig(t.Context(), testcluster.SystemNamespace, "borough-apiserver")
	if err != nil {
		t.Fatal(err)
	}
	proxy, err := tcpproxy.New(strings.TrimPrefix(account.Host, "https://"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(proxy.Close)
	account.Host = "https://127.0.0.1:" + strconv.Itoa(proxy.Port())
	kubeconfig, err := cluster.WriteKubeconfig(newName("proxied"), account)
	if err != nil {
		t.Fatal(err)
	}
	prepare(proxy)

	program, err := harness.Binary("borough-apiserver")
	if err != nil {
		t.Fatal(err)
	}
	port, err := harness.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	p := &proxied{cluster: proxy, host: "https://127.0.0.1:" + strconv.Itoa(port)}
	p.server, err = harness.StartReady(t.Context(), p.config(&rest.Config{}), path, program,
		"--kubeconfig="+kubeconfig, "--data-dir="+t.TempDir(), "--bind-address=127.0.0.1", "--secure-port="+strconv.Itoa(port))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(p.server.Tail(60))
		}
		if err := p.server.StopRunning(); err != nil {
			t.Error(err)
		}
	})
	return p
}

// config returns the configuration of a client of the server, whose certificate is
// self-signed, with the credentials of another.
func (p *proxied) config(config *rest.Config) *rest.Config {
	config = rest.CopyConfig(config)
	config.Host, config.CAData, config.Insecure = p.host, nil, true
	return config
}

// http returns a client with the credentials.
func (p *proxied) http(t *testing.T, config *rest.Config) harness.HTTP {
	t.Helper()
	return harness.NewHTTP(t, p.config(config))
}

// TestClusterLater starts a server while kube-apiserver does not answer. The server
// waits for it, says so, and is ready when kube-apiserver answers.
func TestClusterLater(t *testing.T) {
	t.Parallel()
	const path = "/apis/tenancy.borough.io/v1/namespaces"
	account, err := cluster.ServiceAccountConfig(t.Context(), testcluster.SystemNamespace, "borough-controller-manager")
	if err != nil {
		t.Fatal(err)
	}
	for name, outage := range map[string]func(*tcpproxy.Proxy){
		"refused": (*tcpproxy.Proxy).Refuse,
		"hangs":   (*tcpproxy.Proxy).Hang,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := startProxied(t, "/livez", outage)
			answer := p.http(t, &rest.Config{}).Do(t, http.MethodGet, "/readyz", nil)
			if answer.Code != http.StatusInternalServerError {
				t.Errorf("ready without the cluster: %v", answer)
			}
			wantContains(t, string(answer.Body), "[-]cluster-reached failed", "[-]front-proxy-ca failed", "[+]etcd ok")
			poll.Eventually(t, func() string {
				if strings.Contains(p.server.Output(), "Waiting for the cluster's kube-apiserver") {
					return ""
				}
				return "the log does not say what the server waits for"
			})
			// The token is valid, so the client must not discard it.
			answer = p.http(t, account).Do(t, http.MethodGet, path, nil)
			if answer.Code != http.StatusServiceUnavailable || answer.Header.Get("Retry-After") == "" {
				t.Errorf("a token that cannot be reviewed: got %v, Retry-After %q", answer, answer.Header.Get("Retry-After"))
			}

			if err := p.cluster.Serve(); err != nil {
				t.Fatal(err)
			}
			if err := p.server.Await(t.Context(), func(ctx context.Context) error {
				return harness.GetOK(ctx, p.config(&rest.Config{}), "/readyz", nil)
			}); err != nil {
				t.Fatal(err)
			}
			for user, config := range map[string]*rest.Config{"a token": account, "a certificate": cluster.AdminConfig()} {
				if answer := p.http(t, config).Do(t, http.MethodGet, path, nil); answer.Code != http.StatusOK {
					t.Errorf("%s: got %v", user, answer)
				}
			}
		})
	}
}

// TestClusterEnds ends kube-apiserver for a server that is ready. The server stays ready, because
// a Service would otherwise have none, and only what has to be reviewed gets 503.
func TestClusterEnds(t *testing.T) {
	t.Parallel()
	const path = "/apis/tenancy.borough.io/v1/namespaces"
	p := startProxied(t, "/readyz", func(*tcpproxy.Proxy) {})
	account := func() harness.HTTP {
		config, err := cluster.ServiceAccountConfig(t.Context(), testcluster.SystemNamespace, "borough-controller-manager")
		if err != nil {
			t.Fatal(err)
		}
		return p.http(t, config)
	}
	known, unknown := account(), account()
	if answer := known.Do(t, http.MethodGet, path, nil); answer.Code != http.StatusOK {
		t.Fatalf("before: got %v", answer)
	}
	p.cluster.Refuse()
	answer := unknown.Do(t, http.MethodGet, path, nil)
	if answer.Code != http.StatusServiceUnavailable || answer.Header.Get("Retry-After") == "" {
		t.Errorf("a token that cannot be reviewed: got %v, Retry-After %q", answer, answer.Header.Get("Retry-After"))
	}
	for _, probe := range []string{"/readyz", "/livez"} {
		if answer := p.http(t, &rest.Config{}).Do(t, http.MethodGet, probe+"?verbose", nil); answer.Code != http.StatusOK {
			t.Errorf("%s without the cluster: got %v", probe, answer)
		}
	}
	if answer := p.http(t, cluster.AdminConfig()).Do(t, http.MethodGet, path, nil); answer.Code != http.StatusOK {
		t.Errorf("a certificate: got %v", answer)
	}
	if err := p.cluster.Serve(); err != nil {
		t.Fatal(err)
	}
	poll.Eventually(t, func() string {
		if answer := unknown.Do(t, http.MethodGet, path, nil); answer.Code != http.StatusOK {
			return answer.String()
		}
		return ""
	})
}

// TestClusterStalls stalls the connections between a server and kube-apiserver. New
// ones work, so every request is answered.
func TestClusterStalls(t *testing.T) {
	t.Parallel()
	p := startProxied(t, "/readyz", func(*tcpproxy.Proxy) {})
	// Each client has another token, which is not reviewed yet.
	clients := make([]harness.HTTP, 10)
	for i := range clients {
		account, err := cluster.ServiceAccountConfig(t.Context(), testcluster.SystemNamespace, "borough-controller-manager")
		if err != nil {
			t.Fatal(err)
		}
		clients[i] = p.http(t, account)
	}
	const path = "/apis/tenancy.borough.io/v1/"
	if answer := clients[0].Do(t, http.MethodGet, path+"namespaces", nil); answer.Code != http.StatusOK {
		t.Fatalf("before: got %v", answer)
	}
	p.cluster.Stall()
	var requests sync.WaitGroup
	for i, client := range clients {
		requests.Go(func() {
			// The right to the first is reviewed; those to the others are not.
			for _, resource := range []string{"namespaces", "limitranges", "pods"} {
				if answer := client.Do(t, http.MethodGet, path+resource, nil); answer.Code != http.StatusOK {
					t.Errorf("client %d, %s: got %v", i, resource, answer)
				}
			}
		})
	}
	requests.Wait()
}
