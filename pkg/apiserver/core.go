// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/url"
	"strings"

	apidiscoveryv2 "k8s.io/api/apidiscovery/v2"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/endpoints/discovery"
	"k8s.io/apiserver/pkg/endpoints/discovery/aggregated"
	"k8s.io/apiserver/pkg/endpoints/responsewriter"
	genericapiserver "k8s.io/apiserver/pkg/server"

	v1 "github.com/borough-io/borough/pkg/apis/tenancy/v1"
)

// kubectl assumes that there is a core group. This is the part of it that kubectl
// needs from a standalone server.

// installEmptyCore serves discovery of a core group without resources. kubectl
// resolves the kind List, in which it writes its output, in version v1 of that
// group.
func installEmptyCore(server *genericapiserver.GenericAPIServer, addresses discovery.Addresses, serializer runtime.NegotiatedSerializer) {
	core := schema.GroupVersion{Version: "v1"}
	versions := server.AggregatedLegacyDiscoveryGroupManager
	versions.AddGroupVersion(core.Group, apidiscoveryv2.APIVersionDiscovery{
		Version:   core.Version,
		Freshness: apidiscoveryv2.DiscoveryFreshnessCurrent,
	})
	const prefix = genericapiserver.DefaultLegacyAPIPrefix
	root := discovery.NewLegacyRootAPIHandler(addresses, serializer, prefix)
	none := discovery.APIResourceListerFunc(func() []metav1.APIResource { return []metav1.APIResource{} })
	mux := server.Handler.NonGoRestfulMux
	mux.Handle(prefix, aggregated.WrapAggregatedDiscoveryToHandler(root, versions, versions))
	mux.Handle(prefix+"/"+core.Version, discovery.NewAPIVersionHandler(serializer, core, none))
}

// withCoreNamespaces serves GET /api/v1/namespaces/NAME from our Namespaces, as a
// Namespace of core/v1 in JSON. If an object of any group is not found, kubectl sends
// this request to find out whether its Namespace exists, and shows the 404. Before it
// creates an object in a Namespace, "kubectl auth reconcile" sends it, too.
func withCoreNamespaces(next http.Handler) http.Handler {
	const core = "/api/v1/namespaces/"
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		name, ok := strings.CutPrefix(req.URL.Path, core)
		if ok && req.Method == http.MethodGet && name != "" && !strings.Contains(name, "/") {
			ours := req.Clone(req.Context())
			ours.URL = &url.URL{
				Path:     "/apis/" + v1.SchemeGroupVersion.String() + "/namespaces/" + name,
				RawQuery: req.URL.RawQuery,
			}
			ours.Header.Set("Accept", runtime.ContentTypeJSON)
			ours.Header.Del("Accept-Encoding")
			response := &coreNamespace{ResponseWriter: w}
			next.ServeHTTP(responsewriter.WrapForHTTP1Or2(response), ours)
			response.finish()
			return
		}
		next.ServeHTTP(w, req)
	})
}

// coreNamespace writes a response with one of our Namespaces as one with a Namespace
// of core/v1. It passes on all other responses.
type coreNamespace struct {
	http.ResponseWriter
	code int
	body bytes.Buffer // of a Namespace
}

// Unwrap implements responsewriter.UserProvidedDecorator.
func (r *coreNamespace) Unwrap() http.ResponseWriter { return r.ResponseWriter }

// WriteHeader implements http.ResponseWriter.
func (r *coreNamespace) WriteHeader(code int) {
	r.code = code
	if code != http.StatusOK {
		r.ResponseWriter.WriteHeader(code)
	}
}

// Write implements http.ResponseWriter.
func (r *coreNamespace) Write(data []byte) (int, error) {
	if r.code == 0 {
		r.WriteHeader(http.StatusOK)
	}
	if r.code != http.StatusOK {
		return r.ResponseWriter.Write(data)
	}
	return r.body.Write(data)
}

// finish writes the Namespace.
func (r *coreNamespace) finish() {
	if r.code != http.StatusOK {
		return
	}
	var namespace corev1.Namespace
	body := r.body.Bytes()
	if err := json.Unmarshal(body, &namespace); err == nil {
		namespace.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Namespace"}
		if converted, err := json.Marshal(&namespace); err == nil {
			body = converted
		}
	}
	r.Header().Del("Content-Length")
	r.ResponseWriter.WriteHeader(http.StatusOK)
	_, _ = r.ResponseWriter.Write(body) // the client has gone
}
