// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

// Package authentication serves the reviews of authentication.k8s.io: who the user of
// the request is, and whose a token is. Nothing is stored.
package authentication

import (
	"context"
	"errors"
	"fmt"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"
)

// NewStorage returns the storage of the reviews. Without tokens (nil), no token is
// authenticated. A review that names no audiences is for those of the API.
func NewStorage(tokens authenticator.Token, apiAudiences authenticator.Audiences) map[string]rest.Storage {
	return map[string]rest.Storage{
		"selfsubjectreviews": &REST{
			singular: "selfsubjectreview",
			newFunc:  func() runtime.Object { return &authenticationv1.SelfSubjectReview{} },
			review:   reviewSelf,
		},
		"tokenreviews": &REST{
			singular: "tokenreview",
			newFunc:  func() runtime.Object { return &authenticationv1.TokenReview{} },
			review: func(ctx context.Context, obj runtime.Object) error {
				return reviewToken(ctx, obj.(*authenticationv1.TokenReview), tokens, apiAudiences)
			},
			validate: func(obj runtime.Object) error {
				if obj.(*authenticationv1.TokenReview).Spec.Token == "" {
					return apierrors.NewBadRequest("token is required for TokenReview in authentication")
				}
				return nil
			},
		},
	}
}

// REST serves one kind of review.
type REST struct {
	singular string
	newFunc  func() runtime.Object
	validate func(obj runtime.Object) error // may be nil
	// review sets the status.
	review func(ctx context.Context, obj runtime.Object) error
}

var (
	_ rest.Creater              = &REST{}
	_ rest.Scoper               = &REST{}
	_ rest.SingularNameProvider = &REST{}
)

// New implements rest.Storage.
func (r *REST) New() runtime.Object { return r.newFunc() }

// Destroy implements rest.Storage. Nothing is stored.
func (r *REST) Destroy() {}

// NamespaceScoped implements rest.Scoper.
func (r *REST) NamespaceScoped() bool { return false }

// GetSingularName implements rest.SingularNameProvider.
func (r *REST) GetSingularName() string { return r.singular }

// Create returns the review with its status.
func (r *REST) Create(ctx context.Context, obj runtime.Object, createValidation rest.ValidateObjectFunc, _ *metav1.CreateOptions) (runtime.Object, error) {
	if r.validate != nil {
		if err := r.validate(obj); err != nil {
			return nil, err
		}
	}
	if createValidation != nil {
		if err := createValidation(ctx, obj.DeepCopyObject()); err != nil {
			return nil, err
		}
	}
	return obj, r.review(ctx, obj)
}

func reviewSelf(ctx context.Context, obj runtime.Object) error {
	u, ok := request.UserFrom(ctx)
	if !ok {
		return apierrors.NewBadRequest("no user present on request")
	}
	*obj.(*authenticationv1.SelfSubjectReview) = authenticationv1.SelfSubjectReview{
		ObjectMeta: metav1.ObjectMeta{CreationTimestamp: metav1.NewTime(time.Now())},
		Status:     authenticationv1.SelfSubjectReviewStatus{UserInfo: userInfo(u)},
	}
	return nil
}

func reviewToken(ctx context.Context, review *authenticationv1.TokenReview, tokens authenticator.Token, apiAudiences authenticator.Audiences) error {
	review.Status = authenticationv1.TokenReviewStatus{}
	if tokens == nil {
		return nil
	}
	audiences := authenticator.Audiences(review.Spec.Audiences)
	if len(audiences) == 0 {
		audiences = apiAudiences
	}
	if len(audiences) > 0 {
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
	if response == nil || response.User == nil {
		return nil
	}
	if len(audiences) > 0 && len(audiences.Intersect(response.Audiences)) == 0 {
		return apierrors.NewInternalError(fmt.Errorf("validate the audiences of a token: %w", errAudiences))
	}
	review.Status.User, review.Status.Audiences = userInfo(response.User), response.Audiences
	return nil
}

// errToken is the error of Kubernetes for a token that no authenticator knows.
var errToken = errors.New("invalid bearer token")

var errAudiences = errors.New("the authenticator returned a token for other audiences")

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
