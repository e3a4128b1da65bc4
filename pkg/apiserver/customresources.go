// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"io"
	"net/http"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/endpoints/handlers/responsewriters"
	genericapiserver "k8s.io/apiserver/pkg/server"
)

// customResourcesPath lists the kinds that users have added to a cluster.
const customResourcesPath = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"

var customResources = schema.GroupResource{Group: "apiextensions.k8s.io", Resource: "customresourcedefinitions"}

// installNoCustomResources serves an empty list of CustomResourceDefinitions. In a server
// with core/v1, kubectl requests the list before it creates an object of a kind that
// cannot be patched, such as a NamespaceRequest, and fails without it. Discovery does not
// have the kind, and there is no watch.
func installNoCustomResources(server *genericapiserver.GenericAPIServer) {
	server.Handler.NonGoRestfulMux.HandleFunc(customResourcesPath, func(w http.ResponseWriter, req *http.Request) {
		watch, _ := strconv.ParseBool(req.URL.Query().Get("watch")) // as for other kinds, what is not a boolean is false
		if req.Method != http.MethodGet || watch {
			err := apierrors.NewGenericServerResponse(http.StatusNotFound, req.Method, customResources, "", "", 0, true)
			responsewriters.ErrorNegotiated(err, server.Serializer, schema.GroupVersion{Version: version}, w, req)
			return
		}
		w.Header().Set("Content-Type", runtime.ContentTypeJSON)
		_, _ = io.WriteString(w, `{"kind":"CustomResourceDefinitionList","apiVersion":"apiextensions.k8s.io/v1","metadata":{},"items":[]}`+"\n") // the client has gone
	})
}
