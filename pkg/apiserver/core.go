// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"net/http"
	"net/url"
	"strings"

	apidiscoveryv2 "k8s.io/api/apidiscovery/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/endpoints/discovery"
	"k8s.io/apiserver/pkg/endpoints/discovery/aggregated"
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

// withCoreNamespaces serves GET /api/v1/namespaces/NAME from our Namespaces. If an
// object of any group is not found, kubectl sends this request to find out whether
// its Namespace exists, and shows the 404.
func withCoreNamespaces(next http.Handler) http.Handler {
	const core = "/api/v1/namespaces/"
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		name, ok := strings.CutPrefix(req.URL.Path, core)
		if ok && req.Method == http.MethodGet && name != "" && !strings.Contains(name, "/") {
			ours := *req
			ours.URL = &url.URL{
				Path:     "/apis/" + v1.SchemeGroupVersion.String() + "/namespaces/" + name,
				RawQuery: req.URL.RawQuery,
			}
			req = &ours
		}
		next.ServeHTTP(w, req)
	})
}
