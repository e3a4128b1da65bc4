// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	auditinternal "k8s.io/apiserver/pkg/apis/audit"
	"k8s.io/apiserver/pkg/audit"
	"k8s.io/apiserver/pkg/endpoints/request"
	genericapiserver "k8s.io/apiserver/pkg/server"

	"github.com/borough-io/borough/pkg/apis/tenancy/install"
)

// TestTablesInChain checks that the chain of handlers streams Tables.
func TestTablesInChain(t *testing.T) {
	scheme := runtime.NewScheme()
	install.Install(scheme)
	generic := &genericapiserver.Config{Serializer: serializer.NewCodecFactory(scheme)}
	accept := ""
	handler := (&ExtraConfig{Scheme: scheme}).innerHandlers(http.HandlerFunc(func(_ http.ResponseWriter, req *http.Request) {
		accept = req.Header.Get("Accept")
	}), generic)
	req := httptest.NewRequest(http.MethodGet, "/apis/tenancy.borough.io/v1/namespaces/ns/pods", nil)
	req.Header.Set("Accept", "application/json;as=Table;v=v1;g=meta.k8s.io")
	req = req.WithContext(request.WithRequestInfo(req.Context(), &request.RequestInfo{
		IsResourceRequest: true, Verb: "list", APIGroup: "tenancy.borough.io", APIVersion: "v1", Namespace: "ns", Resource: "pods",
	}))
	req = req.WithContext(audit.WithAuditContext(req.Context()))
	if err := audit.AuditContextFrom(req.Context()).Init(audit.RequestAuditConfig{Level: auditinternal.LevelNone}, nil); err != nil {
		t.Fatal(err)
	}
	handler.ServeHTTP(httptest.NewRecorder(), req)
	if accept != "application/json" {
		t.Errorf("the library is asked for %q", accept)
	}
}
