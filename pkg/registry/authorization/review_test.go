// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package authorization

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/borough-io/borough/pkg/requestlimits"
)

// TestInvalidSelectors checks that the errors of a review do not grow with the number of
// invalid values in its selectors.
func TestInvalidSelectors(t *testing.T) {
	const n = 1000
	values := make([]string, n)
	for i := range values {
		values[i] = fmt.Sprintf("@%d", i)
	}
	var parsing error
	create := func(selector *authorizationv1.LabelSelectorAttributes) (*authorizationv1.SelfSubjectAccessReview, error) {
		authz := authorizer.AuthorizerFunc(func(_ context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
			_, parsing = a.GetLabelSelector()
			return authorizer.DecisionAllow, "", nil
		})
		review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{
			ResourceAttributes: &authorizationv1.ResourceAttributes{Verb: "list", Resource: "pods", LabelSelector: selector},
		}}
		ctx := request.WithUser(t.Context(), &user.DefaultInfo{Name: "u"})
		_, err := NewStorage(authz, nil)["selfsubjectaccessreviews"].(rest.Creater).Create(ctx, review, nil, nil)
		return review, err
	}

	_, err := create(&authorizationv1.LabelSelectorAttributes{
		Requirements: []metav1.LabelSelectorRequirement{{Key: "k", Operator: metav1.LabelSelectorOpIn, Values: values}},
	})
	var status apierrors.APIStatus
	if !apierrors.IsInvalid(err) || !errors.As(err, &status) {
		t.Fatalf("requirements: %v", err)
	}
	if causes := status.Status().Details.Causes; len(causes) != requestlimits.MaxErrors+1 {
		t.Errorf("requirements: %d causes", len(causes))
	}

	review, err := create(&authorizationv1.LabelSelectorAttributes{RawSelector: "k in (" + strings.Join(values, ",") + ")"})
	if err != nil {
		t.Fatalf("raw selector: %v", err)
	}
	if s := review.Status; !s.Allowed || s.EvaluationError == "" {
		t.Errorf("raw selector: %+v", s)
	}
	if limit := (*requestlimits.Error)(nil); !errors.As(parsing, &limit) {
		t.Errorf("raw selector: parsed with the error %.300v", parsing)
	}
}
