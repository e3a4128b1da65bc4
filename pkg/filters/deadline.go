// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package filters

import (
	"math"
	"net/http"
	"strconv"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/endpoints/handlers/responsewriters"
	"k8s.io/apiserver/pkg/endpoints/responsewriter"
	genericapiserver "k8s.io/apiserver/pkg/server"

	v1 "github.com/borough-io/borough/pkg/apis/tenancy/v1"
)

// writeGrace is how much later than the timeout of a request its response must have been
// written: the response can be that it has timed out. It is also the time for a refusal.
const writeGrace = 5 * time.Second

// WithWriteDeadline ends a request whose client does not read the response, some seconds after
// the timeout of requests, to which that of a watch is added: it starts when the request has been
// authenticated and has waited for its turn. The library's timeout waits until a write has ended,
// which for such a client is never, and until then the request counts as one of those in flight:
// a few connections, without any rights, could take all of them. A refusal has only
// these seconds from its start: any client can have as many as it likes. A profile, which runs
// for long, has no deadline. It answers 400 to a path of which it cannot find out what it is for.
//
// It has to be before authentication, whose errors are also written, and after
// WithLimitedQuery.
func WithWriteDeadline(next http.Handler, config *genericapiserver.Config) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		deadline := time.Now().Add(config.RequestTimeout + writeGrace)
		info, err := config.RequestInfoResolver.NewRequestInfo(req)
		if err != nil { // the library would answer 500, and log and quote the query
			refuse(w, req, apierrors.NewBadRequest("the path of the request names no resource"), config.Serializer)
			return
		}
		switch {
		case !config.LongRunningFunc(req, info):
		case info.Verb == "watch":
			deadline = deadline.Add(watchTimeout(req, time.Duration(config.MinRequestTimeout)*time.Second))
		case !info.IsResourceRequest:
			deadline = time.Time{}
		}
		// With HTTP/1, it is that of the connection, and remains until the next request. A writer
		// without a deadline is that of an in-process request, which uses no network.
		_ = http.NewResponseController(w).SetWriteDeadline(deadline)
		if req.Header.Get("Upgrade") != "" {
			w = withUpgradeDeadline(w, deadline)
		}
		next.ServeHTTP(responsewriter.WrapForHTTP1Or2(refusalWriter{w}), req)
	})
}

// refusalWriter shortens the deadline when the response is a refusal.
type refusalWriter struct{ http.ResponseWriter }

// Unwrap returns the writer for http.ResponseController.
func (w refusalWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// WriteHeader implements http.ResponseWriter.
func (w refusalWriter) WriteHeader(code int) {
	if code >= http.StatusBadRequest {
		setRefusalDeadline(w.ResponseWriter)
	}
	w.ResponseWriter.WriteHeader(code)
}

func setRefusalDeadline(w http.ResponseWriter) {
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(writeGrace)) // as in WithWriteDeadline
}

// watchTimeout returns after which time a watch ends at the latest. The library ends one that
// names no time at random, after once to twice the minimum.
func watchTimeout(req *http.Request, minimum time.Duration) time.Duration {
	if seconds, err := strconv.ParseInt(req.URL.Query().Get("timeoutSeconds"), 10, 64); err == nil && seconds > 0 {
		return time.Duration(min(seconds, math.MaxInt32)) * time.Second
	}
	return 2 * minimum
}

// refuse answers before WithWriteDeadline. Without a deadline, the answer to a client that does
// not read it would wait as long as the connection is open, and with HTTP/1, the deadline of the
// request before can have passed.
func refuse(w http.ResponseWriter, req *http.Request, err error, serializer runtime.NegotiatedSerializer) {
	setRefusalDeadline(w)
	responsewriters.ErrorNegotiated(err, serializer, v1.SchemeGroupVersion, w, req)
}
