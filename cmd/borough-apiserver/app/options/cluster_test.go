// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package options

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/client-go/rest"
)

// TestBroadReviews authorizes a request in a cluster that allows everything. Without broad
// reviews, it is only asked for the object of the request.
func TestBroadReviews(t *testing.T) {
	for broad, want := range map[bool][]string{true: {"/any/name"}, false: {"a/x"}} {
		var reviews []string
		cluster := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			var review authorizationv1.SubjectAccessReview
			if err := json.NewDecoder(r.Body).Decode(&review); err != nil || review.Spec.ResourceAttributes == nil {
				t.Errorf("a review %+v, error %v", review, err)
				return
			}
			reviews = append(reviews, review.Spec.ResourceAttributes.Namespace+"/"+review.Spec.ResourceAttributes.Name)
			review.Status.Allowed = true
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusCreated)
			if err := json.NewEncoder(w).Encode(review); err != nil {
				t.Error(err)
			}
		}))
		defer cluster.Close()
		o := New()
		o.Cluster.BroadReviews = broad
		var authorization genericapiserver.AuthorizationInfo
		config := &rest.Config{Host: cluster.URL, ContentConfig: rest.ContentConfig{ContentType: runtime.ContentTypeJSON}}
		if err := o.applyAuthorization(&authorization, config); err != nil {
			t.Fatal(err)
		}
		decision, _, err := authorization.Authorizer.Authorize(t.Context(), authorizer.AttributesRecord{
			User: &user.DefaultInfo{Name: "alice"}, Verb: "get", APIGroup: "g", APIVersion: "v1", Resource: "pods",
			Namespace: "a", Name: "x", ResourceRequest: true,
		})
		if decision != authorizer.DecisionAllow || err != nil {
			t.Errorf("broad %v: decision %v, error %v", broad, decision, err)
		}
		if !slices.Equal(reviews, want) {
			t.Errorf("broad %v: reviews of %q, want %q", broad, reviews, want)
		}
	}
}
