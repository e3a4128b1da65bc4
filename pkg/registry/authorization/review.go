// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

// Package authorization serves the reviews of authorization.k8s.io: whether a user may
// do something, and what the user of the request may do.
package authorization

import (
	"context"
	"fmt"

	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/borough-io/borough/pkg/registry/review"
	"github.com/borough-io/borough/pkg/requestlimits"
)

// NewStorage returns the storage of the reviews.
func NewStorage(authz authorizer.UnconditionalAuthorizer, resolver authorizer.RuleResolver) map[string]rest.Storage {
	a := access{authz}
	return map[string]rest.Storage{
		"subjectaccessreviews": &review.REST{
			Singular: "subjectaccessreview",
			NewFunc:  func() runtime.Object { return &authorizationv1.SubjectAccessReview{} },
			Validate: a.validate,
		},
		"localsubjectaccessreviews": &review.REST{
			Singular: "localsubjectaccessreview", Namespaced: true,
			NewFunc:  func() runtime.Object { return &authorizationv1.LocalSubjectAccessReview{} },
			Validate: a.validateLocal,
		},
		"selfsubjectaccessreviews": &review.REST{
			Singular: "selfsubjectaccessreview",
			NewFunc:  func() runtime.Object { return &authorizationv1.SelfSubjectAccessReview{} },
			Validate: a.validateSelf,
		},
		"selfsubjectrulesreviews": &review.REST{
			Singular: "selfsubjectrulesreview",
			NewFunc:  func() runtime.Object { return &authorizationv1.SelfSubjectRulesReview{} },
			Validate: rules{resolver}.validate,
		},
	}
}

var errNoUser = apierrors.NewBadRequest("no user present on request")

// access answers whether a user may do something.
type access struct {
	authorizer authorizer.UnconditionalAuthorizer
}

func (a access) validate(_ context.Context, obj runtime.Object) (review.AnswerFunc, error) {
	r := obj.(*authorizationv1.SubjectAccessReview)
	if err := invalid(append(validateSpec(r.Spec), validateMeta(r.ObjectMeta)...)); err != nil {
		return nil, err
	}
	return a.answer(obj, &r.Status, attributesOf(r.Spec)), nil
}

func (a access) validateLocal(ctx context.Context, obj runtime.Object) (review.AnswerFunc, error) {
	r := obj.(*authorizationv1.LocalSubjectAccessReview)
	if err := invalid(validateLocal(r)); err != nil {
		return nil, err
	}
	if namespace := request.NamespaceValue(ctx); namespace != r.Namespace {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("spec.resourceAttributes.namespace must match namespace: %v", namespace))
	}
	return a.answer(obj, &r.Status, attributesOf(r.Spec)), nil
}

func (a access) validateSelf(ctx context.Context, obj runtime.Object) (review.AnswerFunc, error) {
	r := obj.(*authorizationv1.SelfSubjectAccessReview)
	u, ok := request.UserFrom(ctx)
	if !ok {
		return nil, errNoUser
	}
	if err := invalid(append(validateAttributes(r.Spec.ResourceAttributes, r.Spec.NonResourceAttributes), validateMeta(r.ObjectMeta)...)); err != nil {
		return nil, err
	}
	return a.answer(obj, &r.Status, attributes(u, r.Spec.ResourceAttributes, r.Spec.NonResourceAttributes)), nil
}

// invalid returns the error of a review that is not valid. As in Kubernetes, it has no
// kind.
func invalid(errs field.ErrorList) error {
	if len(errs) == 0 {
		return nil
	}
	return apierrors.NewInvalid(schema.GroupKind{Group: authorizationv1.GroupName}, "", requestlimits.LimitErrors(errs))
}

func (a access) answer(obj runtime.Object, status *authorizationv1.SubjectAccessReviewStatus, attributes authorizer.AttributesRecord) review.AnswerFunc {
	return func(ctx context.Context) (runtime.Object, error) {
		decision, reason, err := a.authorizer.Authorize(ctx, attributes)
		*status = authorizationv1.SubjectAccessReviewStatus{
			Allowed:         decision == authorizer.DecisionAllow,
			Denied:          decision == authorizer.DecisionDeny,
			Reason:          reason,
			EvaluationError: evaluationError(err, attributes),
		}
		return obj, nil
	}
}

// rules answers what the user of the request may do in a namespace.
type rules struct {
	resolver authorizer.RuleResolver
}

func (r rules) validate(ctx context.Context, obj runtime.Object) (review.AnswerFunc, error) {
	u, ok := request.UserFrom(ctx)
	if !ok {
		return nil, errNoUser
	}
	namespace := obj.(*authorizationv1.SelfSubjectRulesReview).Spec.Namespace
	if namespace == "" {
		return nil, apierrors.NewBadRequest("no namespace on request")
	}
	return func(ctx context.Context) (runtime.Object, error) {
		return &authorizationv1.SelfSubjectRulesReview{Status: r.status(ctx, u, namespace)}, nil
	}, nil
}

func (r rules) status(ctx context.Context, u user.Info, namespace string) authorizationv1.SubjectRulesReviewStatus {
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
	if err != nil {
		status.EvaluationError = err.Error()
	}
	return status
}
