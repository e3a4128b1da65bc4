// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"path/filepath"
	"sync"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/borough-io/borough/test/harness"
)

// faultProxy is a proxy between a controller and the server. It responds to some
// requests itself and forwards all others with the credentials of the controller.
type faultProxy struct {
	// kubeconfig is the kubeconfig file for the controller.
	kubeconfig string

	// served forwards requests, except for those that it serves itself.
	served *http.ServeMux

	mu sync.Mutex
	// faults handle requests before served, by method and path.
	faults map[string]http.HandlerFunc
}

// startWithFaults starts a server, and a controller that reaches it through the proxy.
func startWithFaults(t *testing.T) (*harness.Borough, *faultProxy) {
	t.Helper()
	b := harness.New(t)
	if err := b.StartServer(t.Context()); err != nil {
		t.Fatal(err)
	}
	faults := newFaultProxy(t, b)
	if err := b.StartController(t.Context(), "--kubeconfig="+faults.kubeconfig); err != nil {
		t.Fatal(err)
	}
	return b, faults
}

func newFaultProxy(t *testing.T, b *harness.Borough) *faultProxy {
	t.Helper()
	config := b.Config(t, "controller")
	transport, err := rest.TransportFor(config)
	if err != nil {
		t.Fatal(err)
	}
	target, err := url.Parse(config.Host)
	if err != nil {
		t.Fatal(err)
	}
	proxy := &httputil.ReverseProxy{
		Rewrite:       func(r *httputil.ProxyRequest) { r.SetURL(target) },
		Transport:     transport,
		FlushInterval: -1, // for watches
		ErrorHandler:  func(w http.ResponseWriter, _ *http.Request, _ error) { w.WriteHeader(http.StatusBadGateway) },
	}
	f := &faultProxy{served: http.NewServeMux(), faults: map[string]http.HandlerFunc{}}
	f.served.Handle("/", proxy)
	server := httptest.NewServer(f)
	t.Cleanup(func() {
		// Close blocks on open watches, so first reject new connections and
		// close the open ones.
		server.Listener.Close()
		server.CloseClientConnections()
		server.Close()
	})

	f.kubeconfig = filepath.Join(t.TempDir(), "kubeconfig")
	kubeconfig := clientcmdapi.NewConfig()
	kubeconfig.Clusters["faults"] = &clientcmdapi.Cluster{Server: server.URL}
	kubeconfig.Contexts["faults"] = &clientcmdapi.Context{Cluster: "faults"}
	kubeconfig.CurrentContext = "faults"
	if err := clientcmd.WriteToFile(*kubeconfig, f.kubeconfig); err != nil {
		t.Fatal(err)
	}
	return f
}

func (f *faultProxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	fault := f.faults[r.Method+" "+r.URL.Path]
	f.mu.Unlock()
	if fault != nil {
		fault(w, r)
		return
	}
	f.served.ServeHTTP(w, r)
}

// set makes handler respond to a request, given as method and path, until clear.
func (f *faultProxy) set(request string, handler http.HandlerFunc) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.faults[request] = handler
}

func (f *faultProxy) clear() {
	f.mu.Lock()
	defer f.mu.Unlock()
	clear(f.faults)
}

// serveGroup adds another API group to discovery, like an aggregator. It has the
// resource widgets, without objects.
func (f *faultProxy) serveGroup(name string) {
	version := func(group string) metav1.APIGroup {
		gv := metav1.GroupVersionForDiscovery{GroupVersion: group + "/v1", Version: "v1"}
		return metav1.APIGroup{Name: group, Versions: []metav1.GroupVersionForDiscovery{gv}, PreferredVersion: gv}
	}
	f.served.Handle("GET /api", answer(http.StatusNotFound, status(http.StatusNotFound, metav1.StatusReasonNotFound, "not found")))
	f.served.Handle("GET /apis", answer(http.StatusOK, metav1.APIGroupList{
		TypeMeta: metav1.TypeMeta{Kind: "APIGroupList", APIVersion: "v1"},
		Groups:   []metav1.APIGroup{version("tenancy.borough.io"), version(name)},
	}))
	f.served.Handle("GET /apis/"+name+"/v1", answer(http.StatusOK, metav1.APIResourceList{
		TypeMeta:     metav1.TypeMeta{Kind: "APIResourceList", APIVersion: "v1"},
		GroupVersion: name + "/v1",
		APIResources: []metav1.APIResource{{Name: "widgets", Namespaced: true, Kind: "Widget", Verbs: metav1.Verbs{"list", "delete", "deletecollection"}}},
	}))
	f.served.Handle("GET /apis/"+name+"/v1/namespaces/{namespace}/widgets", answer(http.StatusOK, metav1.PartialObjectMetadataList{
		TypeMeta: metav1.TypeMeta{Kind: "PartialObjectMetadataList", APIVersion: "meta.k8s.io/v1"},
	}))
}

var (
	forbidden   = answer(http.StatusForbidden, status(http.StatusForbidden, metav1.StatusReasonForbidden, "limitranges.tenancy.borough.io is forbidden: they are kept"))
	unavailable = answer(http.StatusServiceUnavailable, status(http.StatusServiceUnavailable, metav1.StatusReasonServiceUnavailable, "service unavailable"))
)

func status(code int32, reason metav1.StatusReason, message string) metav1.Status {
	return metav1.Status{
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"},
		Status:   metav1.StatusFailure, Code: code, Reason: reason, Message: message,
	}
}

func answer(code int, body any) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(code)
		_ = json.NewEncoder(w).Encode(body) // fails only if the client is gone
	}
}
