// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package authorization

import (
	"context"
	"encoding/json"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"
)

// FuzzReview creates reviews of any content. A review is refused as the client's error,
// or answered.
func FuzzReview(f *testing.F) {
	for _, seed := range []string{
		`{"spec":{"user":"u","resourceAttributes":{"verb":"get","labelSelector":{"rawSelector":"a in (b"},"fieldSelector":{"requirements":[{"key":"a","operator":"In","values":["b","c"]}]}}}}`,
		`{"spec":{"groups":["g"],"nonResourceAttributes":{"path":"/","verb":"get"},"extra":{"a":["b"]}}}`,
		`{"metadata":{"namespace":"n","name":"x"},"spec":{}}`,
		`{"metadata":{"namespace":"n"},"spec":{"user":"u","resourceAttributes":{"namespace":"n","labelSelector":{"requirements":[{"key":"?","operator":"Exists"}]}}}}`,
	} {
		f.Add([]byte(seed))
	}
	asked := false
	authz := authorizer.AuthorizerFunc(func(_ context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
		asked = true
		if a.GetUser() == nil {
			return authorizer.DecisionDeny, "there is no user", nil
		}
		return authorizer.DecisionAllow, "", nil
	})
	storage := NewStorage(authz, nil)
	f.Fuzz(func(t *testing.T, data []byte) {
		ctx := request.WithNamespace(request.WithUser(t.Context(), &user.DefaultInfo{Name: "u"}), "n")
		for name, status := range map[string]func(obj any) authorizationv1.SubjectAccessReviewStatus{
			"subjectaccessreviews": func(obj any) authorizationv1.SubjectAccessReviewStatus {
				return obj.(*authorizationv1.SubjectAccessReview).Status
			},
			"localsubjectaccessreviews": func(obj any) authorizationv1.SubjectAccessReviewStatus {
				return obj.(*authorizationv1.LocalSubjectAccessReview).Status
			},
			"selfsubjectaccessreviews": func(obj any) authorizationv1.SubjectAccessReviewStatus {
				return obj.(*authorizationv1.SelfSubjectAccessReview).Status
			},
		} {
			creater := storage[name].(rest.Creater)
			obj := creater.New()
			if json.Unmarshal(data, obj) != nil {
				t.Skip("not a review")
			}
			asked = false
			reviewed, err := creater.Create(ctx, obj, nil, nil)
			switch {
			case err == nil:
				if s := status(reviewed); !s.Allowed || s.Denied || !asked {
					t.Errorf("%s: %+v", name, s)
				}
			case !apierrors.IsInvalid(err) && !apierrors.IsBadRequest(err):
				t.Errorf("%s: %v", name, err)
			case asked:
				t.Errorf("%s: refused after it was decided: %v", name, err)
			}
		}
	})
}
