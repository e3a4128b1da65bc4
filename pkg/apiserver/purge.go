// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"net/http"
	"strconv"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/endpoints/responsewriter"

	"github.com/borough-io/borough/pkg/apis/tenancy"
	v1 "github.com/borough-io/borough/pkg/apis/tenancy/v1"
	"github.com/borough-io/borough/pkg/registry/collection"
)

// withPurges makes a deletecollection a purge if a header binds it to a
// Namespace, and tells in headers of the reply what came of it. Elsewhere
// v1.NamespaceUIDHeader means nothing.
func withPurges(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if uid := req.Header.Values(v1.NamespaceUIDHeader); len(uid) > 0 {
			info, ok := request.RequestInfoFrom(req.Context())
			if ok && info.APIGroup == tenancy.GroupName && info.Verb == "deletecollection" {
				reply := &purgeReply{ResponseWriter: w}
				purge := collection.Purge{NamespaceUID: types.UID(uid[0]), Done: reply.done}
				req = req.WithContext(collection.WithPurge(req.Context(), purge))
				w = responsewriter.WrapForHTTP1Or2(reply)
			}
		}
		next.ServeHTTP(w, req)
	})
}

// purgeReply adds v1.RemainingObjectsHeader and v1.DeletedObjectsHeader when the
// reply is written. It may be written before the purge is done, by another
// goroutine, when time is up.
type purgeReply struct {
	http.ResponseWriter
	outcome atomic.Pointer[outcome]
}

// outcome is how many objects a purge has removed, and how many it has left.
type outcome struct{ deleted, remaining int }

func (r *purgeReply) done(deleted, remaining int) { r.outcome.Store(&outcome{deleted, remaining}) }

// WriteHeader implements http.ResponseWriter.
func (r *purgeReply) WriteHeader(code int) {
	if outcome := r.outcome.Load(); outcome != nil {
		r.Header().Set(v1.DeletedObjectsHeader, strconv.Itoa(outcome.deleted))
		r.Header().Set(v1.RemainingObjectsHeader, strconv.Itoa(outcome.remaining))
	}
	r.ResponseWriter.WriteHeader(code)
}

// Unwrap lets the library find what else the writer can do.
func (r *purgeReply) Unwrap() http.ResponseWriter { return r.ResponseWriter }
