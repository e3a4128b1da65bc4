// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package validation_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/borough-io/borough/pkg/apis/tenancy"
	"github.com/borough-io/borough/pkg/apis/tenancy/validation"
)

func TestNamespaceRequest(t *testing.T) {
	const reserved = `names that start with "kube-" are reserved for the system`
	for name, tc := range map[string]struct {
		meta metav1.ObjectMeta
		want []string
	}{
		"valid":           {metav1.ObjectMeta{Name: "a", Labels: map[string]string{"a": "b"}, Annotations: map[string]string{"a": "b"}}, nil},
		"similar names":   {metav1.ObjectMeta{Name: "kube", GenerateName: "kubernetes-"}, nil},
		"requester":       {metav1.ObjectMeta{Annotations: map[string]string{tenancy.RequesterAnnotation: ""}}, []string{`metadata.annotations[tenancy.borough.io/requester]: Forbidden: is set by the server when the namespace is created by a namespacerequest`}},
		"much":            {metav1.ObjectMeta{Labels: map[string]string{"a": "b"}, Annotations: map[string]string{"c": strings.Repeat("x", 16<<10-3)}}, nil},
		"too much":        {metav1.ObjectMeta{Labels: map[string]string{"a": "b"}, Annotations: map[string]string{"c": strings.Repeat("x", 16<<10-2)}}, []string{`metadata: Invalid value: "": labels and annotations have 16385 bytes together, and can have at most 16384 in a namespace request`}},
		"resourceVersion": {metav1.ObjectMeta{ResourceVersion: "1"}, []string{`metadata.resourceVersion: Forbidden: may not be set in a namespace request`}},
		"finalizers":      {metav1.ObjectMeta{Finalizers: []string{"example.com/f"}}, []string{`metadata.finalizers: Forbidden: may not be set in a namespace request`}},
		"ownerReferences": {metav1.ObjectMeta{OwnerReferences: []metav1.OwnerReference{{}}}, []string{`metadata.ownerReferences: Forbidden: may not be set in a namespace request`}},
		"reserved names": {metav1.ObjectMeta{Name: "kube-system", GenerateName: "kube-"}, []string{
			`metadata.name: Invalid value: "kube-system": ` + reserved, `metadata.generateName: Invalid value: "kube-": ` + reserved,
		}},
	} {
		t.Run(name, func(t *testing.T) {
			got := messages(validation.ValidateNamespaceRequest(&tenancy.NamespaceRequest{ObjectMeta: tc.meta}))
			if diff := cmp.Diff(tc.want, got, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestRequesterUpdate(t *testing.T) {
	requestedBy := func(users ...string) *tenancy.Namespace {
		ns := &tenancy.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "a", ResourceVersion: "1"}}
		for _, user := range users {
			ns.Annotations = map[string]string{tenancy.RequesterAnnotation: user}
		}
		return ns
	}
	const immutable = `metadata.annotations[tenancy.borough.io/requester]: Invalid value: `
	for name, tc := range map[string]struct {
		new, old *tenancy.Namespace
		want     []string
	}{
		"none":          {requestedBy(), requestedBy(), nil},
		"same":          {requestedBy("alice"), requestedBy("alice"), nil},
		"set":           {requestedBy("alice"), requestedBy(), []string{immutable + `"alice": field is immutable`}},
		"set to empty":  {requestedBy(""), requestedBy(), []string{immutable + `"": field is immutable`}},
		"changed":       {requestedBy("bob"), requestedBy("alice"), []string{immutable + `"bob": field is immutable`}},
		"removed":       {requestedBy(), requestedBy("alice"), []string{immutable + `"": field is immutable`}},
		"removed empty": {requestedBy(), requestedBy(""), []string{immutable + `"": field is immutable`}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, messages(validation.ValidateNamespaceUpdate(tc.new, tc.old)), cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
