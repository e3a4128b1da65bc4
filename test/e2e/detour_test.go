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

	"github.com/borough-io/borough/test/e2e/harness"
)

// call is one step that a controller takes with a Namespace.
type call struct {
	namespace string
	step      string // "list pods", "deletecollection pods", "finalize", ...
	reply     bool   // the reply is on its way back, otherwise the request there
	code      int    // of the reply
}

// detour starts a controller whose requests take the way through pass, which may
// keep them, there and back. Watches go straight. The controller is stopped with
// the test, or by the function that is returned.
func detour(t *testing.T, b *harness.Borough, pass func(context.Context, call)) (stop func()) {
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
	kubeconfig.Clusters["detour"] = &clientcmdapi.Cluster{Server: front.URL}
	kubeconfig.Contexts["detour"] = &clientcmdapi.Context{Cluster: "detour"}
	kubeconfig.CurrentContext = "detour"
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

// callOf reads what a request is about. There is nothing to tell about watches
// and what concerns no single Namespace.
func callOf(r *http.Request) (call, bool) {
	rest, ok := strings.CutPrefix(r.URL.Path, api+"/namespaces/")
	if !ok || r.URL.Query().Has("watch") {
		return call{}, false
	}
	parts := strings.Split(rest, "/")
	verb := map[string]string{http.MethodGet: "get", http.MethodDelete: "delete", http.MethodPut: "update"}[r.Method]
	c := call{namespace: parts[0]}
	switch {
	case len(parts) == 1:
		c.step = verb
	case parts[1] == "finalize" || parts[1] == "status":
		c.step = parts[1]
	case len(parts) == 2:
		c.step = map[string]string{"get": "list", "delete": "deletecollection"}[verb] + " " + parts[1]
	default:
		c.step = verb + " " + parts[1]
	}
	return c, true
}
