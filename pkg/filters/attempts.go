// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package filters

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"maps"
	"net/http"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/audit"
	"k8s.io/apiserver/pkg/endpoints/handlers/responsewriters"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/warning"

	"github.com/borough-io/borough/pkg/apis/coregroup"
	"github.com/borough-io/borough/pkg/apis/tenancy"
	"github.com/borough-io/borough/pkg/storage/precondition"
)

// WithAttempts ensures that admission of a write was based on what is in storage: if
// it has read something that is out of date, the request is processed again from
// the start, in another attempt (see package precondition). Mutating admission has
// to run again too, so this cannot be done further inside.
//
// An attempt whose response is dropped is counted in the metrics of requests, but
// leaves no trace in the response. In the audit event it leaves only the annotations of
// webhooks and policies, which the library never replaces.
func WithAttempts(next http.Handler, checker precondition.Checker, serializer runtime.NegotiatedSerializer) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		info, ok := request.RequestInfoFrom(req.Context())
		if !ok || !isWrite(info) {
			next.ServeHTTP(w, req)
			return
		}
		body := &rereadable{source: req.Body}
		var staleAt int64
		for {
			ctx, attempt := precondition.NewAttempt(req.Context(), checker, staleAt)
			answer := &answer{ResponseWriter: w, ctx: req.Context(), attempt: attempt, header: http.Header{}}
			again := req.WithContext(warning.WithWarningRecorder(ctx, answer))
			again.Body = body.fromStart()
			next.ServeHTTP(answer, again)
			if answer.err != nil {
				err := apierrors.NewInternalError(fmt.Errorf("verify the preconditions of the request: %w", answer.err))
				responsewriters.ErrorNegotiated(err, serializer, schema.GroupVersion{Group: info.APIGroup, Version: info.APIVersion}, w, req)
				return
			}
			if staleAt = answer.staleAt; staleAt == 0 {
				return
			}
		}
	})
}

// isOwn reports whether the request is for a resource of our group, or for its form in
// the core group.
func isOwn(info *request.RequestInfo) bool {
	return info.IsResourceRequest && coregroup.OwnGroup(info.APIGroup, info.Resource) == tenancy.GroupName
}

// isWrite reports whether admission may record preconditions of the request.
func isWrite(info *request.RequestInfo) bool {
	if !isOwn(info) {
		return false
	}
	switch info.Verb {
	case "create", "update", "patch":
		return true
	}
	return false
}

// rereadable is a request body that can be read several times. It keeps what has
// been read; the readers bound its size.
type rereadable struct {
	source io.Reader
	read   bytes.Buffer
}

func (r *rereadable) fromStart() io.ReadCloser {
	return io.NopCloser(io.MultiReader(bytes.NewReader(r.read.Bytes()), io.TeeReader(r.source, &r.read)))
}

// answer forwards the response of an attempt, or drops it. It decides when the
// status code is written, before anything is forwarded.
type answer struct {
	http.ResponseWriter
	ctx     context.Context // of the request
	attempt *precondition.Attempt
	header  http.Header
	decided bool
	// One of these is set if the response is dropped.
	staleAt int64
	err     error

	// Warnings may be added by several goroutines.
	mu       sync.Mutex
	warnings []func()
}

// Unwrap lets the library find the other interfaces of the writer.
func (a *answer) Unwrap() http.ResponseWriter { return a.ResponseWriter }

// AddWarning implements warning.Recorder.
func (a *answer) AddWarning(agent, text string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.warnings = append(a.warnings, func() { warning.AddWarning(a.ctx, agent, text) })
}

// Header implements http.ResponseWriter.
func (a *answer) Header() http.Header { return a.header }

// WriteHeader implements http.ResponseWriter.
func (a *answer) WriteHeader(code int) {
	if !a.decided {
		a.decided = true
		a.decide(code)
	}
	if !a.dropped() {
		a.ResponseWriter.WriteHeader(code)
	}
}

// Write implements http.ResponseWriter.
func (a *answer) Write(data []byte) (int, error) {
	if !a.decided {
		a.WriteHeader(http.StatusOK)
	}
	if a.dropped() {
		return len(data), nil
	}
	return a.ResponseWriter.Write(data)
}

func (a *answer) dropped() bool { return a.staleAt != 0 || a.err != nil }

func (a *answer) decide(code int) {
	// A server error does not depend on what the attempt was based on.
	if a.staleAt = a.attempt.StaleAt(); a.staleAt == 0 && code < http.StatusInternalServerError {
		a.staleAt, a.err = a.attempt.Verify(a.ctx)
	}
	if a.dropped() {
		if event := audit.AuditContextFrom(a.ctx); event.Enabled() {
			event.SetEventResponseStatus(nil)
		}
		return
	}
	maps.Copy(a.ResponseWriter.Header(), a.header)
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, add := range a.warnings {
		add()
	}
}
