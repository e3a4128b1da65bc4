// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

// Package retriable answers requests that cannot be authenticated or authorized now, so
// that clients keep their credentials and, where that can help, retry them.
package retriable

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

// note is what a request could not be authenticated or authorized for.
type note struct {
	mu  sync.Mutex
	err *apierrors.StatusError
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

func (n *note) get() *apierrors.StatusError {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.err
}

// replacer replaces the response to a request that has a note.
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
		if err := r.note.get(); err != nil && slices.Contains(replacedCodes, code) {
			r.replaced = true
			header := r.ResponseWriter.Header()
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
