// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package delegation

import (
	"context"
	"errors"
	"net"
	"net/http"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	"github.com/borough-io/borough/pkg/authfailure"
)

func noteErrors(delegate authorizer.Authorizer) authorizer.Authorizer {
	return authorizer.AuthorizerFunc(func(ctx context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
		if u := a.GetUser(); u != nil {
			ctx = withReviewedUser(ctx, u.GetName())
		}
		decision, reason, err := delegate.Authorize(ctx, a)
		switch {
		case err == nil:
		case errors.Is(err, errTooManyReviews):
			authfailure.Note(ctx, newTooManyRequests(errTooManyReviews))
		case unanswered(err):
			authfailure.Note(ctx, newUnavailable("SubjectAccessReview"))
		}
		return decision, reason, err
	})
}

func newTooManyRequests(err error) *apierrors.StatusError {
	return apierrors.NewTooManyRequests(err.Error(), authfailure.RetryAfter)
}

func newUnavailable(kind string) *apierrors.StatusError {
	return authfailure.NewUnavailable("the cluster's kube-apiserver does not answer a " + kind)
}

// unanswered reports whether an error, or one of those that it aggregates, is that
// of a request without an answer, or of an answer with a 5xx code.
func unanswered(err error) bool {
	return anyOf(err, func(err error) bool {
		var status apierrors.APIStatus
		if errors.As(err, &status) {
			code := status.Status().Code
			return code >= http.StatusInternalServerError || code == http.StatusTooManyRequests
		}
		var network net.Error
		return errors.As(err, &network) || errors.Is(err, context.DeadlineExceeded)
	})
}

// refused reports whether an error, or one of those that it aggregates, is that of a
// cluster that does not let the server create a review.
func refused(err error) bool {
	return anyOf(err, func(err error) bool { return apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err) })
}

// anyOf reports whether an error, or one of those that it aggregates, is one of a kind.
func anyOf(err error, is func(error) bool) bool {
	var aggregate utilerrors.Aggregate
	if !errors.As(err, &aggregate) {
		return is(err)
	}
	return slices.ContainsFunc(aggregate.Errors(), func(err error) bool { return anyOf(err, is) })
}
