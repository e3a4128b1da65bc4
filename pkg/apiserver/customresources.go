// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"io"
	"net/http"

	"k8s.io/apimachinery/pkg/runtime"
	genericapiserver "k8s.io/apiserver/pkg/server"
)

// customResourcesPath lists the kinds that users have added to a cluster.
const customResourcesPath = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"

// installNoCustomResources serves an empty list of CustomResourceDefinitions. In a server
// with core/v1, kubectl requests the list before it creates an object of a kind that
// cannot be patched, such as a NamespaceRequest, and fails without it. Discovery does not
// have the kind.
func installNoCustomResources(server *genericapiserver.GenericAPIServer) {
	server.Handler.NonGoRestfulMux.HandleFunc(customResourcesPath, func(w http.ResponseWriter, req *http.Request) {
		if req.Method != http.MethodGet {
			http.NotFound(w, req)
			return
		}
		w.Header().Set("Content-Type", runtime.ContentTypeJSON)
		_, _ = io.WriteString(w, `{"kind":"CustomResourceDefinitionList","apiVersion":"apiextensions.k8s.io/v1","metadata":{},"items":[]}`+"\n") // the client has gone
	})
}
