// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/borough-io/borough/test/harness"
)

// call is a request of a controller for a Namespace, or the response to it.
type call struct {
	namespace string
	step      string // "list pods", "create namespacepurges", "finalize", ...
	reply     bool   // a response, otherwise a request
	code      int    // of the response
}

// startProxiedController starts a controller behind a proxy. The proxy calls pass,
// which may block, before it forwards each request and each response, except for
// watches. The controller is stopped at the end of the test, or by stop.
func startProxiedController(t *testing.T, b *harness.Borough, pass func(context.Context, call)) (stop func()) {
	t.Helper()
	config := b.Config(t, "controller")
	transport, err := rest.TransportFor(config)
	if err != nil {
		t.Fatal(err)
	}
	server, err := url.Parse(config.Host)
	if err != nil {
		t.Fatal(err)
	}
	proxy := &httputil.ReverseProxy{
		Transport:     transport,
		FlushInterval: -1, // watches
		Rewrite:       func(r *httputil.ProxyRequest) { r.SetURL(server) },
		ModifyResponse: func(r *http.Response) error {
			if c, ok := callOf(r.Request); ok {
				c.reply, c.code = true, r.StatusCode
				pass(r.Request.Context(), c)
			}
			return nil
		},
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, _ error) { w.WriteHeader(http.StatusBadGateway) },
	}
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if c, ok := callOf(r); ok {
			pass(r.Context(), c)
		}
		proxy.ServeHTTP(w, r)
	}))
	t.Cleanup(front.Close)

	kubeconfig := clientcmdapi.NewConfig()
	kubeconfig.Clusters["proxy"] = &clientcmdapi.Cluster{Server: front.URL}
	kubeconfig.Contexts["proxy"] = &clientcmdapi.Context{Cluster: "proxy"}
	kubeconfig.CurrentContext = "proxy"
	path := filepath.Join(t.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(*kubeconfig, path); err != nil {
		t.Fatal(err)
	}
	controller := &harness.Borough{Dir: b.Dir}
	if err := controller.StartController(t.Context(), "--kubeconfig="+path); err != nil {
		t.Fatal(err)
	}
	stop = func() {
		if err := controller.Stop(); err != nil {
			t.Error(err)
		}
		if t.Failed() {
			t.Log(controller.Logs())
		}
		controller.Controller = nil
	}
	t.Cleanup(stop)
	return stop
}

// callOf returns the call of a request. It returns false for watches, and for
// requests that do not concern a single Namespace.
func callOf(r *http.Request) (call, bool) {
	rest, ok := strings.CutPrefix(r.URL.Path, api+"/namespaces/")
	if !ok || r.URL.Query().Has("watch") {
		return call{}, false
	}
	parts := strings.Split(rest, "/")
	verb := map[string]string{http.MethodGet: "get", http.MethodDelete: "delete", http.MethodPut: "update", http.MethodPost: "create"}[r.Method]
	c := call{namespace: parts[0]}
	switch {
	case len(parts) == 1:
		c.step = verb
	case parts[1] == "finalize" || parts[1] == "status":
		c.step = parts[1]
	case len(parts) == 2:
		c.step = map[string]string{"get": "list", "delete": "deletecollection", "create": "create"}[verb] + " " + parts[1]
	default:
		c.step = verb + " " + parts[1]
	}
	return c, true
}
