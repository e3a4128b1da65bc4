// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package filters

import (
	"net/http"
	"time"

	"k8s.io/apiserver/pkg/endpoints/request"
)

// writeGrace is how much later than the timeout of a request its response must have been
// written: the response can be that it has timed out.
const writeGrace = 5 * time.Second

// WithWriteDeadline ends a request whose client does not read the response, some seconds after
// the timeout of requests. The library's timeout waits until a write has ended, which for such a
// client is never, and until then the request counts as one of those in flight: a few connections,
// without any rights, could take all of them. Watches, and other requests that run for long, are
// not among those, and have no deadline.
//
// It has to be among the first handlers: an error from before authentication is also written.
func WithWriteDeadline(next http.Handler, resolver request.RequestInfoResolver, longRunning request.LongRunningRequestCheck, timeout time.Duration) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		var deadline time.Time
		if info, err := resolver.NewRequestInfo(req); err != nil || !longRunning(req, info) {
			deadline = time.Now().Add(timeout + writeGrace)
		}
		// With HTTP/1, it is that of the connection, and remains until the next request. A writer
		// that has none, as that of a request in the process, is of no network.
		_ = http.NewResponseController(w).SetWriteDeadline(deadline)
		next.ServeHTTP(w, req)
	})
}
