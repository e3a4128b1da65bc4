// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"io"
	"net/http"
	"strconv"

	apidiscoveryv2 "k8s.io/api/apidiscovery/v2"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/endpoints/discovery"
	"k8s.io/apiserver/pkg/endpoints/handlers/responsewriters"
	genericapiserver "k8s.io/apiserver/pkg/server"
)

// customResources are the kinds that users have added to a cluster.
var customResources = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}

// customResource is their entry in discovery. Only a list is served.
var customResource = metav1.APIResource{
	Name: customResources.Resource, SingularName: "customresourcedefinition", Kind: "CustomResourceDefinition",
	ShortNames: []string{"crd", "crds"}, Categories: []string{"api-extensions"}, Verbs: metav1.Verbs{"list"},
}

// installNoCustomResources serves an empty list of CustomResourceDefinitions. In a server
// with core/v1, clients request the list, and fail without it: kubectl, before it creates an
// object of a kind that cannot be patched, such as a NamespaceRequest, and Terraform, which also
// looks for the kind in discovery.
func installNoCustomResources(server *genericapiserver.GenericAPIServer) {
	gv := customResources.GroupVersion()
	inGroup := metav1.GroupVersionForDiscovery{GroupVersion: gv.String(), Version: gv.Version}
	group := metav1.APIGroup{Name: gv.Group, Versions: []metav1.GroupVersionForDiscovery{inGroup}, PreferredVersion: inGroup}
	server.DiscoveryGroupManager.AddGroup(group)
	server.AggregatedDiscoveryGroupManager.AddGroupVersion(gv.Group, apidiscoveryv2.APIVersionDiscovery{
		Version:   gv.Version,
		Freshness: apidiscoveryv2.DiscoveryFreshnessCurrent,
		Resources: []apidiscoveryv2.APIResourceDiscovery{{
			Resource: customResource.Name, SingularResource: customResource.SingularName, Scope: apidiscoveryv2.ScopeCluster,
			ResponseKind: &metav1.GroupVersionKind{Group: gv.Group, Version: gv.Version, Kind: customResource.Kind},
			ShortNames:   customResource.ShortNames, Categories: customResource.Categories, Verbs: customResource.Verbs,
		}},
	})
	groupPath, versionPath := "/apis/"+gv.Group, "/apis/"+gv.String()
	mux := server.Handler.NonGoRestfulMux
	mux.Handle(groupPath, discovery.NewAPIGroupHandler(server.Serializer, group))
	mux.Handle(versionPath, discovery.NewAPIVersionHandler(server.Serializer, gv, discovery.APIResourceListerFunc(func() []metav1.APIResource {
		return []metav1.APIResource{customResource}
	})))
	mux.HandleFunc(versionPath+"/"+customResources.Resource, func(w http.ResponseWriter, req *http.Request) {
		watch, _ := strconv.ParseBool(req.URL.Query().Get("watch")) // as for other kinds, what is not a boolean is false
		if req.Method != http.MethodGet || watch {
			err := apierrors.NewGenericServerResponse(http.StatusNotFound, req.Method, customResources.GroupResource(), "", "", 0, true)
			responsewriters.ErrorNegotiated(err, server.Serializer, schema.GroupVersion{Version: version}, w, req)
			return
		}
		w.Header().Set("Content-Type", runtime.ContentTypeJSON)
		_, _ = io.WriteString(w, `{"kind":"CustomResourceDefinitionList","apiVersion":"apiextensions.k8s.io/v1","metadata":{},"items":[]}`+"\n") // the client has gone
	})
}
