// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/endpoints/request"

	"github.com/borough-io/borough/pkg/apis/tenancy"
	v1 "github.com/borough-io/borough/pkg/apis/tenancy/v1"
	"github.com/borough-io/borough/pkg/registry/collection"
)

func TestWithPurges(t *testing.T) {
	for name, test := range map[string]struct {
		info   request.RequestInfo
		header []string
		uid    types.UID
		purge  bool
	}{
		"purge":                  {request.RequestInfo{APIGroup: tenancy.GroupName, Verb: "deletecollection"}, []string{"u"}, "u", true},
		"a purge of nothing":     {request.RequestInfo{APIGroup: tenancy.GroupName, Verb: "deletecollection"}, []string{""}, "", true},
		"ordinary":               {request.RequestInfo{APIGroup: tenancy.GroupName, Verb: "deletecollection"}, nil, "", false},
		"deletion of one object": {request.RequestInfo{APIGroup: tenancy.GroupName, Verb: "delete"}, []string{"u"}, "", false},
		"another group":          {request.RequestInfo{APIGroup: "example.com", Verb: "deletecollection"}, []string{"u"}, "", false},
	} {
		t.Run(name, func(t *testing.T) {
			req := httptest.NewRequest(http.MethodDelete, "/", nil)
			for _, value := range test.header {
				req.Header.Add(v1.NamespaceUIDHeader, value)
			}
			called := false
			reply := httptest.NewRecorder()
			withPurges(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
				called = true
				purge, ok := collection.PurgeFrom(req.Context())
				if purge.NamespaceUID != test.uid || ok != test.purge {
					t.Errorf("got a purge of %q: %t, want %q: %t", purge.NamespaceUID, ok, test.uid, test.purge)
				}
				if ok {
					purge.Done(4, 3)
				}
				w.WriteHeader(http.StatusOK)
			})).ServeHTTP(reply, req.WithContext(request.WithRequestInfo(req.Context(), &test.info)))
			want, deleted := "", ""
			if test.purge {
				want, deleted = "3", "4"
			}
			if got := reply.Header().Get(v1.DeletedObjectsHeader); got != deleted {
				t.Errorf("the reply says that %q were deleted, want %q", got, deleted)
			}
			if got := reply.Header().Get(v1.RemainingObjectsHeader); got != want {
				t.Errorf("the reply says that %q remain, want %q", got, want)
			}
			if !called {
				t.Error("the request was not served")
			}
		})
	}
}
