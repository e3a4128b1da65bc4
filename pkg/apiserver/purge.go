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
// Namespace, and tells in a header of the reply what it has left. Elsewhere
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

// purgeReply adds v1.RemainingObjectsHeader when the reply is written. It may be
// written before the purge is done, by another goroutine, when time is up.
type purgeReply struct {
	http.ResponseWriter
	remaining atomic.Pointer[string]
}

func (r *purgeReply) done(remaining int) { r.remaining.Store(new(strconv.Itoa(remaining))) }

// WriteHeader implements http.ResponseWriter.
func (r *purgeReply) WriteHeader(code int) {
	if remaining := r.remaining.Load(); remaining != nil {
		r.Header().Set(v1.RemainingObjectsHeader, *remaining)
	}
	r.ResponseWriter.WriteHeader(code)
}

// Unwrap lets the library find what else the writer can do.
func (r *purgeReply) Unwrap() http.ResponseWriter { return r.ResponseWriter }
