// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

// Package authentication serves the reviews of authentication.k8s.io: who the user of
// the request is, and whose a token is.
package authentication

import (
	"context"
	"errors"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/borough-io/borough/pkg/registry/review"
)

// NewStorage returns the storage of the reviews.
func NewStorage(tokens authenticator.Token) map[string]rest.Storage {
	return map[string]rest.Storage{
		"selfsubjectreviews": &review.REST{
			Singular: "selfsubjectreview",
			NewFunc:  func() runtime.Object { return &authenticationv1.SelfSubjectReview{} },
			Validate: func(context.Context, runtime.Object) (review.AnswerFunc, error) { return reviewSelf, nil },
		},
		"tokenreviews": &review.REST{
			Singular: "tokenreview",
			NewFunc:  func() runtime.Object { return &authenticationv1.TokenReview{} },
			Validate: func(_ context.Context, obj runtime.Object) (review.AnswerFunc, error) {
				r := obj.(*authenticationv1.TokenReview)
				if r.Spec.Token == "" {
					return nil, apierrors.NewBadRequest("token is required for TokenReview in authentication")
				}
				return func(ctx context.Context) (runtime.Object, error) {
					reviewToken(ctx, r, tokens)
					return r, nil
				}, nil
			},
		},
	}
}

func reviewSelf(ctx context.Context) (runtime.Object, error) {
	u, ok := request.UserFrom(ctx)
	if !ok {
		return nil, apierrors.NewBadRequest("no user present on request")
	}
	return &authenticationv1.SelfSubjectReview{
		ObjectMeta: metav1.ObjectMeta{CreationTimestamp: metav1.NewTime(time.Now())},
		Status:     authenticationv1.SelfSubjectReviewStatus{UserInfo: userInfo(u)},
	}, nil
}

func reviewToken(ctx context.Context, review *authenticationv1.TokenReview, tokens authenticator.Token) {
	review.Status = authenticationv1.TokenReviewStatus{}
	if audiences := review.Spec.Audiences; len(audiences) > 0 {
		ctx = authenticator.WithAudiences(ctx, audiences)
	}
	response, ok, err := tokens.AuthenticateToken(ctx, review.Spec.Token)
	review.Status.Authenticated = ok
	if !ok && err == nil {
		err = errToken
	}
	if err != nil {
		review.Status.Error = err.Error()
	}
	if response != nil && response.User != nil {
		review.Status.User, review.Status.Audiences = userInfo(response.User), response.Audiences
	}
}

// errToken is the error of Kubernetes for a token that no authenticator knows.
var errToken = errors.New("invalid bearer token")

func userInfo(u user.Info) authenticationv1.UserInfo {
	info := authenticationv1.UserInfo{
		Username: u.GetName(),
		UID:      u.GetUID(),
		Groups:   u.GetGroups(),
		Extra:    make(map[string]authenticationv1.ExtraValue, len(u.GetExtra())),
	}
	for key, values := range u.GetExtra() {
		info.Extra[key] = values
	}
	return info
}
