// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

// Package authfailure answers requests that are not authenticated or authorized, so that
// clients keep their credentials and connections and, where that can help, retry them.
package authfailure

import (
	"context"
	"net/http"
	"slices"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/endpoints/handlers/responsewriters"
	"k8s.io/apiserver/pkg/endpoints/responsewriter"
)

// WithErrors answers with the noted error where the library answers 401, 403 or 500: with a
// 401 clients discard their credentials. It answers 403 if it cannot be decided whether a
// client may impersonate a user.
func WithErrors(next http.Handler, serializer runtime.NegotiatedSerializer) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		n := &note{}
		req = req.WithContext(context.WithValue(req.Context(), noteKey{}, n))
		next.ServeHTTP(responsewriter.WrapForHTTP1Or2(&replacer{ResponseWriter: w, note: n, req: req, serializer: serializer}), req)
	})
}

// RetryAfter is how long a client should wait before it retries, in seconds.
const RetryAfter = 1

// NewUnavailable returns ServiceUnavailable with RetryAfter.
func NewUnavailable(message string) *apierrors.StatusError {
	err := apierrors.NewServiceUnavailable(message)
	err.ErrStatus.Details = &metav1.StatusDetails{RetryAfterSeconds: RetryAfter}
	return err
}

// note is what is known about the authentication and authorization of a request.
type note struct {
	mu   sync.Mutex
	err  *apierrors.StatusError // why it failed
	keep bool                   // the connection
}

type noteKey struct{}

// Note notes why the request of the context cannot be authenticated or authorized now.
// Without WithErrors it does nothing.
func Note(ctx context.Context, err *apierrors.StatusError) {
	if n, ok := ctx.Value(noteKey{}).(*note); ok {
		n.mu.Lock()
		defer n.mu.Unlock()
		n.err = err
	}
}

// KeepConnection keeps the connection of the request of the context, although the request
// is anonymous: the library closes it after such requests, but that of a proxy has requests
// of other users as well. Without WithErrors it does nothing.
func KeepConnection(ctx context.Context) {
	if n, ok := ctx.Value(noteKey{}).(*note); ok {
		n.mu.Lock()
		defer n.mu.Unlock()
		n.keep = true
	}
}

func (n *note) get() (err *apierrors.StatusError, keep bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.err, n.keep
}

// replacer replaces the response to a request according to its note.
type replacer struct {
	http.ResponseWriter
	note       *note
	req        *http.Request
	serializer runtime.NegotiatedSerializer

	decided, replaced bool
}

// Unwrap implements responsewriter.UserProvidedDecorator.
func (r *replacer) Unwrap() http.ResponseWriter { return r.ResponseWriter }

var replacedCodes = []int{http.StatusUnauthorized, http.StatusForbidden, http.StatusInternalServerError}

// WriteHeader implements http.ResponseWriter.
func (r *replacer) WriteHeader(code int) {
	if !r.decided {
		r.decided = true
		err, keep := r.note.get()
		header := r.ResponseWriter.Header()
		if keep {
			header.Del("Connection")
		}
		if err != nil && slices.Contains(replacedCodes, code) {
			r.replaced = true
			for _, name := range []string{"Content-Type", "Content-Length", "X-Content-Type-Options", "Www-Authenticate"} {
				header.Del(name)
			}
			responsewriters.ErrorNegotiated(err, r.serializer, schema.GroupVersion{}, r.ResponseWriter, r.req)
		}
	}
	if !r.replaced {
		r.ResponseWriter.WriteHeader(code)
	}
}

// Write implements http.ResponseWriter.
func (r *replacer) Write(data []byte) (int, error) {
	if !r.decided {
		r.WriteHeader(http.StatusOK)
	}
	if r.replaced {
		return len(data), nil
	}
	return r.ResponseWriter.Write(data)
}
