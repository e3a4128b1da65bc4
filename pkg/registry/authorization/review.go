// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

// Package authorization serves the reviews of authorization.k8s.io: whether a user may
// do something, and what the user of the request may do. Nothing is stored.
package authorization

import (
	"context"
	"fmt"

	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"
)

// NewStorage returns the storage of the reviews.
func NewStorage(authz authorizer.UnconditionalAuthorizer, resolver authorizer.RuleResolver) map[string]rest.Storage {
	return map[string]rest.Storage{
		"selfsubjectrulesreviews": &RulesReviewREST{resolver: resolver},
		"subjectaccessreviews": &ReviewREST{
			authorizer: authz, singular: "subjectaccessreview",
			newFunc: func() runtime.Object { return &authorizationv1.SubjectAccessReview{} },
			review: func(_ context.Context, obj runtime.Object) (review, error) {
				r := obj.(*authorizationv1.SubjectAccessReview)
				errs := append(validateSpec(r.Spec), validateMeta(r.ObjectMeta)...)
				return review{errs: errs, status: &r.Status, attributes: func() authorizer.AttributesRecord { return attributesOf(r.Spec) }}, nil
			},
		},
		"localsubjectaccessreviews": &ReviewREST{
			authorizer: authz, singular: "localsubjectaccessreview", namespaced: true,
			newFunc: func() runtime.Object { return &authorizationv1.LocalSubjectAccessReview{} },
			review:  reviewLocal,
		},
		"selfsubjectaccessreviews": &ReviewREST{
			authorizer: authz, singular: "selfsubjectaccessreview",
			newFunc: func() runtime.Object { return &authorizationv1.SelfSubjectAccessReview{} },
			review:  reviewSelf,
		},
	}
}

// review is a review of any kind.
type review struct {
	errs       field.ErrorList
	status     *authorizationv1.SubjectAccessReviewStatus
	attributes func() authorizer.AttributesRecord // if there are no errors
}

func reviewLocal(ctx context.Context, obj runtime.Object) (review, error) {
	r := obj.(*authorizationv1.LocalSubjectAccessReview)
	errs := validateLocal(r)
	if namespace := request.NamespaceValue(ctx); len(errs) == 0 && namespace != r.Namespace {
		return review{}, apierrors.NewBadRequest(fmt.Sprintf("spec.resourceAttributes.namespace must match namespace: %v", namespace))
	}
	return review{errs: errs, status: &r.Status, attributes: func() authorizer.AttributesRecord { return attributesOf(r.Spec) }}, nil
}

func reviewSelf(ctx context.Context, obj runtime.Object) (review, error) {
	r := obj.(*authorizationv1.SelfSubjectAccessReview)
	u, ok := request.UserFrom(ctx)
	if !ok {
		return review{}, apierrors.NewBadRequest("no user present on request")
	}
	errs := append(validateAttributes(r.Spec.ResourceAttributes, r.Spec.NonResourceAttributes), validateMeta(r.ObjectMeta)...)
	return review{errs: errs, status: &r.Status, attributes: func() authorizer.AttributesRecord {
		return attributes(u, r.Spec.ResourceAttributes, r.Spec.NonResourceAttributes)
	}}, nil
}

// ReviewREST answers whether a user may do something.
type ReviewREST struct {
	authorizer authorizer.UnconditionalAuthorizer
	singular   string
	namespaced bool
	newFunc    func() runtime.Object
	// review returns the review in an object of the kind.
	review func(ctx context.Context, obj runtime.Object) (review, error)
}

var (
	_ rest.Creater              = &ReviewREST{}
	_ rest.Scoper               = &ReviewREST{}
	_ rest.SingularNameProvider = &ReviewREST{}
)

// New implements rest.Storage.
func (r *ReviewREST) New() runtime.Object { return r.newFunc() }

// Destroy implements rest.Storage. Nothing is stored.
func (r *ReviewREST) Destroy() {}

// NamespaceScoped implements rest.Scoper.
func (r *ReviewREST) NamespaceScoped() bool { return r.namespaced }

// GetSingularName implements rest.SingularNameProvider.
func (r *ReviewREST) GetSingularName() string { return r.singular }

// Create returns the review with its status. It returns Invalid or BadRequest if the
// review is not valid.
func (r *ReviewREST) Create(ctx context.Context, obj runtime.Object, createValidation rest.ValidateObjectFunc, _ *metav1.CreateOptions) (runtime.Object, error) {
	review, err := r.review(ctx, obj)
	if err != nil {
		return nil, err
	}
	if len(review.errs) > 0 {
		// Without a kind, as in Kubernetes.
		return nil, apierrors.NewInvalid(schema.GroupKind{Group: authorizationv1.GroupName}, "", review.errs)
	}
	if createValidation != nil {
		if err := createValidation(ctx, obj.DeepCopyObject()); err != nil {
			return nil, err
		}
	}
	attributes := review.attributes()
	decision, reason, err := r.authorizer.Authorize(ctx, attributes)
	*review.status = authorizationv1.SubjectAccessReviewStatus{
		Allowed:         decision == authorizer.DecisionAllow,
		Denied:          decision == authorizer.DecisionDeny,
		Reason:          reason,
		EvaluationError: evaluationError(err, attributes),
	}
	return obj, nil
}

// RulesReviewREST answers what the user of the request may do in a namespace.
type RulesReviewREST struct {
	resolver authorizer.RuleResolver
}

var (
	_ rest.Creater              = &RulesReviewREST{}
	_ rest.Scoper               = &RulesReviewREST{}
	_ rest.SingularNameProvider = &RulesReviewREST{}
)

// New implements rest.Storage.
func (r *RulesReviewREST) New() runtime.Object { return &authorizationv1.SelfSubjectRulesReview{} }

// Destroy implements rest.Storage. Nothing is stored.
func (r *RulesReviewREST) Destroy() {}

// NamespaceScoped implements rest.Scoper.
func (r *RulesReviewREST) NamespaceScoped() bool { return false }

// GetSingularName implements rest.SingularNameProvider.
func (r *RulesReviewREST) GetSingularName() string { return "selfsubjectrulesreview" }

// Create returns a review with the rules. It returns BadRequest without a namespace.
func (r *RulesReviewREST) Create(ctx context.Context, obj runtime.Object, createValidation rest.ValidateObjectFunc, _ *metav1.CreateOptions) (runtime.Object, error) {
	u, ok := request.UserFrom(ctx)
	if !ok {
		return nil, apierrors.NewBadRequest("no user present on request")
	}
	namespace := obj.(*authorizationv1.SelfSubjectRulesReview).Spec.Namespace
	if namespace == "" {
		return nil, apierrors.NewBadRequest("no namespace on request")
	}
	if createValidation != nil {
		if err := createValidation(ctx, obj.DeepCopyObject()); err != nil {
			return nil, err
		}
	}
	status, err := r.rules(ctx, u, namespace)
	if err != nil {
		status.EvaluationError = err.Error()
	}
	return &authorizationv1.SelfSubjectRulesReview{Status: status}, nil
}

func (r *RulesReviewREST) rules(ctx context.Context, u user.Info, namespace string) (authorizationv1.SubjectRulesReviewStatus, error) {
	resources, nonResources, incomplete, err := r.resolver.RulesFor(ctx, u, namespace)
	status := authorizationv1.SubjectRulesReviewStatus{
		ResourceRules:    make([]authorizationv1.ResourceRule, 0, len(resources)),
		NonResourceRules: make([]authorizationv1.NonResourceRule, 0, len(nonResources)),
		Incomplete:       incomplete,
	}
	for _, rule := range resources {
		status.ResourceRules = append(status.ResourceRules, authorizationv1.ResourceRule{
			Verbs: rule.GetVerbs(), APIGroups: rule.GetAPIGroups(), Resources: rule.GetResources(), ResourceNames: rule.GetResourceNames(),
		})
	}
	for _, rule := range nonResources {
		status.NonResourceRules = append(status.NonResourceRules, authorizationv1.NonResourceRule{
			Verbs: rule.GetVerbs(), NonResourceURLs: rule.GetNonResourceURLs(),
		})
	}
	return status, err
}
