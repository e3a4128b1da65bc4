// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package namespace_test

import (
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/borough-io/borough/pkg/apis/tenancy"
	"github.com/borough-io/borough/pkg/registry/tenancy/namespace"
)

// TestRequested shows that the predicate of a requester selects by the index, and what
// the index finds.
func TestRequested(t *testing.T) {
	requested := func(annotations map[string]string) *tenancy.Namespace {
		return &tenancy.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "n", Annotations: annotations}}
	}
	predicate := namespace.Requested("alice")
	matches := predicate.MatcherIndex(t.Context())
	if len(matches) != 1 || matches[0].Value != "alice" {
		t.Fatalf("the predicate matches %v", matches)
	}
	index := (*namespace.Indexers())[matches[0].IndexName]
	if index == nil {
		t.Fatalf("there is no index %q", matches[0].IndexName)
	}
	for name, tc := range map[string]struct {
		ns     *tenancy.Namespace
		values []string
		alices bool
	}{
		"not requested":    {requested(nil), nil, false},
		"of the user":      {requested(map[string]string{tenancy.RequesterAnnotation: "alice"}), []string{"alice"}, true},
		"of another user":  {requested(map[string]string{tenancy.RequesterAnnotation: "bob"}), []string{"bob"}, false},
		"of no user":       {requested(map[string]string{tenancy.RequesterAnnotation: ""}), []string{""}, false},
		"other annotation": {requested(map[string]string{"requester": "alice"}), nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			values, err := index(tc.ns)
			if err != nil || !slices.Equal(values, tc.values) {
				t.Errorf("the index has %q, %v", values, err)
			}
			if match, err := predicate.Matches(tc.ns); err != nil || match != tc.alices {
				t.Errorf("got %t, %v", match, err)
			}
		})
	}
}
