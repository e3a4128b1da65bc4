// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package delegation

import (
	"context"
	"errors"
	"net"
	"net/http"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/endpoints/handlers/responsewriters"
	"k8s.io/apiserver/pkg/endpoints/responsewriter"
)

// retryAfter is how long a client should wait before it retries, in seconds.
const retryAfter = 1

// WithRetriableErrors answers 503 to a request that cannot be authenticated or
// authorized because the cluster does not answer, and 429 if its user has too many
// reviews in flight, both with Retry-After. The library answers 401 and 500: with a
// 401 clients discard their credentials.
func WithRetriableErrors(next http.Handler, serializer runtime.NegotiatedSerializer) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		n := &note{}
		req = req.WithContext(context.WithValue(req.Context(), noteKey{}, n))
		next.ServeHTTP(responsewriter.WrapForHTTP1Or2(&replacer{ResponseWriter: w, note: n, req: req, serializer: serializer}), req)
	})
}

func noteErrors(delegate authorizer.Authorizer) authorizer.Authorizer {
	return authorizer.AuthorizerFunc(func(ctx context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
		if u := a.GetUser(); u != nil {
			ctx = withReviewedUser(ctx, u.GetName())
		}
		decision, reason, err := delegate.Authorize(ctx, a)
		switch {
		case err == nil:
		case errors.Is(err, errTooManyReviews):
			noteError(ctx, apierrors.NewTooManyRequests(errTooManyReviews.Error(), retryAfter))
		default:
			noteError(ctx, newUnavailable("SubjectAccessReview"))
		}
		return decision, reason, err
	})
}

func newUnavailable(kind string) *apierrors.StatusError {
	err := apierrors.NewServiceUnavailable("the cluster's kube-apiserver does not answer a " + kind)
	err.ErrStatus.Details = &metav1.StatusDetails{RetryAfterSeconds: retryAfter}
	return err
}

// unanswered reports whether an error, or one of those that it aggregates, is that
// of a request without an answer, or of an answer with a 5xx code.
func unanswered(err error) bool {
	var aggregate utilerrors.Aggregate
	if errors.As(err, &aggregate) {
		for _, err := range aggregate.Errors() {
			if unanswered(err) {
				return true
			}
		}
		return false
	}
	var status apierrors.APIStatus
	if errors.As(err, &status) {
		code := status.Status().Code
		return code >= http.StatusInternalServerError || code == http.StatusTooManyRequests
	}
	var network net.Error
	return errors.As(err, &network) || errors.Is(err, context.DeadlineExceeded)
}

// note is what a request could not be authenticated or authorized for.
type note struct {
	mu  sync.Mutex
	err *apierrors.StatusError
}

type noteKey struct{}

func noteError(ctx context.Context, err *apierrors.StatusError) {
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

// WriteHeader implements http.ResponseWriter.
func (r *replacer) WriteHeader(code int) {
	if !r.decided {
		r.decided = true
		if err := r.note.get(); err != nil && (code == http.StatusUnauthorized || code == http.StatusInternalServerError) {
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
