// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package delegation

import (
	"slices"
	"strings"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
)

func TestReviews(t *testing.T) {
	everywhere := func(r authorizationv1.ResourceAttributes) bool { return true }
	inNamespace := func(r authorizationv1.ResourceAttributes) bool { return r.Namespace == "a" }
	oneObject := func(r authorizationv1.ResourceAttributes) bool { return r.Namespace == "a" && r.Name == "x" }
	oneOrNone := func(r authorizationv1.ResourceAttributes) bool {
		return r.Namespace == "a" && (r.Name == "x" || r.Name == "")
	}
	status := get("a", "x")
	status.Subresource = "status"
	for _, tc := range []struct {
		name    string
		allow   func(authorizationv1.ResourceAttributes) bool
		broad   bool
		ask     []authorizer.AttributesRecord
		allowed []bool
		reviews []string
	}{
		{
			"the right in all namespaces covers each object", everywhere, true,
			[]authorizer.AttributesRecord{get("a", "x"), get("a", "y"), get("b", "x")},
			[]bool{true, true, true}, []string{"alice get g/v1/pods /any/name"},
		},
		{
			"the right in a namespace covers its objects", inNamespace, true,
			[]authorizer.AttributesRecord{get("a", "x"), get("a", "y"), get("b", "x")},
			[]bool{true, true, false}, []string{"alice get g/v1/pods /any/name", "alice get g/v1/pods a/any/name", "alice get g/v1/pods b/any/name", "alice get g/v1/pods b/x"},
		},
		{
			"the right to one object", oneObject, true,
			[]authorizer.AttributesRecord{get("a", "x"), get("a", "y"), get("a", "x")},
			[]bool{true, false, true}, []string{"alice get g/v1/pods /any/name", "alice get g/v1/pods a/any/name", "alice get g/v1/pods a/x", "alice get g/v1/pods a/y"},
		},
		{
			"the right to one object, and to what has no name", oneOrNone, true,
			[]authorizer.AttributesRecord{get("a", "x"), get("a", "y"), get("a", "")},
			[]bool{true, false, true}, []string{"alice get g/v1/pods /any/name", "alice get g/v1/pods a/any/name", "alice get g/v1/pods a/x", "alice get g/v1/pods a/y", "alice get g/v1/pods /", "alice get g/v1/pods a/"},
		},
		{
			"only exact reviews", everywhere, false,
			[]authorizer.AttributesRecord{get("a", "x"), get("a", "y")},
			[]bool{true, true}, []string{"alice get g/v1/pods a/x", "alice get g/v1/pods a/y"},
		},
		{
			"the right to objects does not cover their subresources", func(r authorizationv1.ResourceAttributes) bool { return r.Subresource == "" }, true,
			[]authorizer.AttributesRecord{status, get("a", "x")},
			[]bool{false, true}, []string{"alice get g/v1/pods/status /any/name", "alice get g/v1/pods/status a/any/name", "alice get g/v1/pods/status a/x", "alice get g/v1/pods /any/name"},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c := &cluster{allow: tc.allow}
			a := c.authorizer(t, tc.broad)
			for i, attributes := range tc.ask {
				decision, _, err := a.Authorize(t.Context(), attributes)
				if err != nil || (decision == authorizer.DecisionAllow) != tc.allowed[i] {
					t.Errorf("%s/%s: decision %v, error %v, want allowed %v", attributes.Namespace, attributes.Name, decision, err, tc.allowed[i])
				}
			}
			if !slices.Equal(c.reviews, tc.reviews) {
				t.Errorf("reviews %q, want %q", c.reviews, tc.reviews)
			}
		})
	}
}

// A broad right that was denied, and was granted since, is reviewed again when a user
// requests all of it.
func TestBroadDenial(t *testing.T) {
	everywhere := false
	c := &cluster{allow: func(r authorizationv1.ResourceAttributes) bool {
		return everywhere || r.Namespace == "a" && r.Name == ""
	}}
	a := c.authorizer(t, true)
	allowed := func(attributes authorizer.AttributesRecord) bool {
		decision, _, err := a.Authorize(t.Context(), attributes)
		return decision == authorizer.DecisionAllow && err == nil
	}
	if !allowed(get("a", "")) {
		t.Error("the right in a namespace is not enough")
	}
	everywhere = true
	if !allowed(get("", "")) {
		t.Errorf("the right in all namespaces is not enough after reviews %q", c.reviews)
	}
}

// A selector narrows a right, so the right without it covers the request.
func TestSelectors(t *testing.T) {
	c := &cluster{allow: func(r authorizationv1.ResourceAttributes) bool { return r.FieldSelector != nil }}
	list := get("", "")
	list.Verb = "list"
	list.FieldSelectorRequirements = fields.Requirements{{Operator: "=", Field: "metadata.name", Value: "x"}}
	if decision, _, err := c.authorizer(t, true).Authorize(t.Context(), list); decision != authorizer.DecisionAllow || err != nil {
		t.Errorf("decision %v, error %v", decision, err)
	}
	if len(c.reviews) != 2 {
		t.Errorf("reviews %q, want one without the selector and one with it", c.reviews)
	}
}

// TestLargeSelectors checks that a review has no selectors of many bytes, which the cache would
// keep.
func TestLargeSelectors(t *testing.T) {
	large := strings.Repeat("x", maxSelectors)
	requirement, err := labels.NewRequirement("a", selection.In, []string{"b", "c"})
	if err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		field string
		label labels.Requirements
		want  bool // selectors
	}{
		"small":                 {"x", labels.Requirements{*requirement}, true},
		"a large field":         {large, labels.Requirements{*requirement}, false},
		"a large label as well": {"x", slices.Repeat(labels.Requirements{*requirement}, maxSelectors/3), false},
	} {
		t.Run(name, func(t *testing.T) {
			for _, broad := range []bool{true, false} {
				withSelectors := 0
				c := &cluster{allow: func(r authorizationv1.ResourceAttributes) bool {
					if r.FieldSelector != nil || r.LabelSelector != nil {
						withSelectors++
					}
					return false
				}}
				list := get("a", "")
				list.Verb = "list"
				list.FieldSelectorRequirements = fields.Requirements{{Operator: "=", Field: "metadata.name", Value: tc.field}}
				list.LabelSelectorRequirements = tc.label
				if decision, _, err := c.authorizer(t, broad).Authorize(t.Context(), list); decision == authorizer.DecisionAllow || err != nil {
					t.Errorf("decision %v, error %v", decision, err)
				}
				if (withSelectors > 0) != tc.want {
					t.Errorf("%d reviews with selectors, of %q", withSelectors, c.reviews)
				}
			}
		})
	}
}

func TestWithoutReview(t *testing.T) {
	anonymous := &user.DefaultInfo{Name: user.Anonymous, Groups: []string{user.AllUnauthenticated}}
	for _, tc := range []struct {
		name string
		a    authorizer.AttributesRecord
		want authorizer.Decision
	}{
		{"a privileged group", authorizer.AttributesRecord{User: &user.DefaultInfo{Name: "root", Groups: []string{user.SystemPrivilegedGroup}}, Verb: "get", Resource: "pods", ResourceRequest: true}, authorizer.DecisionAllow},
		{"anonymous, health", authorizer.AttributesRecord{User: anonymous, Verb: "get", Path: "/healthz"}, authorizer.DecisionAllow},
		{"anonymous, a resource", authorizer.AttributesRecord{User: anonymous, Verb: "get", Resource: "pods", ResourceRequest: true}, authorizer.DecisionDeny},
		{"anonymous, a path", authorizer.AttributesRecord{User: anonymous, Verb: "get", Path: "/metrics"}, authorizer.DecisionDeny},
	} {
		c := &cluster{allow: func(authorizationv1.ResourceAttributes) bool { return true }}
		if got, _, err := c.authorizer(t, true).Authorize(t.Context(), tc.a); got != tc.want || err != nil || len(c.reviews) > 0 {
			t.Errorf("%s: decision %v, error %v, reviews %q; want %v and no review", tc.name, got, err, c.reviews, tc.want)
		}
	}
	c := &cluster{}
	if _, _, err := c.authorizer(t, true).Authorize(t.Context(), authorizer.AttributesRecord{User: anonymous, Verb: "get", Path: "/version"}); err != nil || !slices.Equal(c.reviews, []string{"/version"}) {
		t.Errorf("the version: error %v, reviews %q", err, c.reviews)
	}
}
