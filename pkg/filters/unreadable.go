// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package filters

import (
	"context"
	"fmt"
	"io"
	"net/http"

	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/endpoints/request"

	"github.com/borough-io/borough/pkg/storage/unreadable"
)

// unreadablePath shows the stored objects that cannot be read. Who may get it is
// shown them by /readyz?verbose too.
const unreadablePath = "/readyz/unreadable-objects"

// maxUnreadable is how many objects of each resource are shown.
const maxUnreadable = 20

// WithUnreadable adds the objects that cannot be read to /readyz?verbose. They do not
// affect readiness, because the server is ready for all others. /readyz needs no
// rights, and keys contain the names of Namespaces, so only users who may get
// unreadablePath see the keys.
func WithUnreadable(next http.Handler, objects *unreadable.Objects, authz authorizer.UnconditionalAuthorizer) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if req.Method != http.MethodGet {
			next.ServeHTTP(w, req)
			return
		}
		switch _, verbose := req.URL.Query()["verbose"]; {
		case req.URL.Path == unreadablePath:
			w.Header().Set("Content-Type", "text/plain; charset=utf-8")
			w.Header().Set("X-Content-Type-Options", "nosniff")
			writeUnreadable(w, objects, maxUnreadable)
		case req.URL.Path == "/readyz" && verbose:
			next.ServeHTTP(w, req)
			shown := 0
			if mayGet(req.Context(), authz, unreadablePath) {
				shown = maxUnreadable
			}
			writeUnreadable(w, objects, shown)
		default:
			next.ServeHTTP(w, req)
		}
	})
}

// mayGet reports whether the user of the request may get a path.
func mayGet(ctx context.Context, authz authorizer.UnconditionalAuthorizer, path string) bool {
	user, ok := request.UserFrom(ctx)
	if !ok || authz == nil {
		return false
	}
	decision, _, err := authz.Authorize(ctx, authorizer.AttributesRecord{User: user, Verb: "get", Path: path})
	return err == nil && decision == authorizer.DecisionAllow
}

// writeUnreadable writes how many objects of each resource cannot be read, and up
// to shown of each.
func writeUnreadable(w io.Writer, objects *unreadable.Objects, shown int) {
	counts := objects.Counts()
	if len(counts) == 0 {
		fmt.Fprintln(w, "[+]unreadable-objects none")
	}
	for _, count := range counts {
		fmt.Fprintf(w, "[!]unreadable-objects %s: %d\n", count.Resource, count.Objects)
		some := objects.Some(count.Resource, shown)
		for _, object := range some {
			fmt.Fprintf(w, "   %s: %s\n", object.Key, object.Reason)
		}
		if more := count.Objects - len(some); more > 0 && shown > 0 {
			fmt.Fprintf(w, "   and %d more\n", more)
		}
	}
}
