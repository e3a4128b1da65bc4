// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package ownerreferences

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	"github.com/borough-io/borough/pkg/apis/tenancy"
	v1 "github.com/borough-io/borough/pkg/apis/tenancy/v1"
)

// recorder keeps the rights that it is asked about, and allows them.
type recorder struct{ asked []authorizer.AttributesRecord }

func (r *recorder) Authorize(_ context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
	r.asked = append(r.asked, a.(authorizer.AttributesRecord))
	return authorizer.DecisionAllow, "", nil
}

// TestRightToDelete adds an owner to an object. The user has to have the right to delete
// it, in the namespace that authorization asks about.
func TestRightToDelete(t *testing.T) {
	owned := metav1.ObjectMeta{OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: "Node", Name: "n", UID: "u"}}}
	for _, test := range []struct {
		resource, namespace, name string
		object, old               runtime.Object
		wantNamespace             string
	}{
		// The request has no namespace: filters.WithClusterScopedNamespaces removes it.
		{"namespaces", "", "a", &tenancy.Namespace{ObjectMeta: owned}, &tenancy.Namespace{}, "a"},
		{"namespacetemplates", "", "a", &tenancy.NamespaceTemplate{ObjectMeta: owned}, &tenancy.NamespaceTemplate{}, ""},
		{"pods", "a", "p", &tenancy.Pod{ObjectMeta: owned}, &tenancy.Pod{}, "a"},
	} {
		rights := &recorder{}
		plugin := &Plugin{authorizer: rights}
		resource := v1.SchemeGroupVersion.WithResource(test.resource)
		attributes := admission.NewAttributesRecord(test.object, test.old, v1.SchemeGroupVersion.WithKind("Any"), test.namespace, test.name, resource, "", admission.Update, nil, false, nil)
		if err := plugin.Validate(t.Context(), attributes, nil); err != nil {
			t.Errorf("%s: %v", test.resource, err)
		}
		want := []authorizer.AttributesRecord{{
			Verb: "delete", APIGroup: resource.Group, APIVersion: resource.Version, Resource: test.resource,
			Namespace: test.wantNamespace, Name: test.name, ResourceRequest: true,
		}}
		if diff := cmp.Diff(want, rights.asked); diff != "" {
			t.Errorf("%s: (-want +got)\n%s", test.resource, diff)
		}
	}
}

// TestRefusals changes the owners of a Pod p, with the rights that are allowed and no others.
func TestRefusals(t *testing.T) {
	mapper := meta.NewDefaultRESTMapper(nil)
	mapper.Add(v1.SchemeGroupVersion.WithKind("Pod"), meta.RESTScopeNamespace)
	mapper.Add(v1.SchemeGroupVersion.WithKind("NamespaceTemplate"), meta.RESTScopeRoot)
	owner := func(kind string, uid types.UID, block *bool) metav1.OwnerReference {
		return metav1.OwnerReference{APIVersion: v1.SchemeGroupVersion.String(), Kind: kind, Name: "o", UID: uid, BlockOwnerDeletion: block}
	}
	blocking := func(kind string) []metav1.OwnerReference {
		return []metav1.OwnerReference{owner(kind, "1", new(true))}
	}
	const (
		remove     = "delete pods.tenancy.borough.io a/p"
		everything = "update */finalizers.* /*"
		ofPod      = "update pods/finalizers.tenancy.borough.io a/o"
		ofTemplate = "update namespacetemplates/finalizers.tenancy.borough.io /o"
		noDelete   = "cannot set an ownerRef on a resource you can't delete"
		noBlock    = "cannot set blockOwnerDeletion if an ownerReference refers to a resource you can't set finalizers on"
		noMapping  = "cannot find RESTMapping for APIVersion tenancy.borough.io/v1 Kind Nonsense"
	)
	for _, test := range []struct {
		name        string
		operation   admission.Operation
		before, set []metav1.OwnerReference
		allowed     []string
		want        string // part of the error
		wantAsked   []string
	}{
		{"an owner that is added", admission.Update, nil, []metav1.OwnerReference{owner("Pod", "1", nil)}, nil, noDelete, []string{remove}},
		{"an owner that is removed", admission.Update, blocking("Pod"), nil, nil, noDelete, []string{remove}},
		{"a new object", admission.Create, nil, []metav1.OwnerReference{owner("Pod", "1", new(false))}, nil, "", nil},
		{"blocking", admission.Create, nil, blocking("Pod"), nil, noBlock, []string{everything, ofPod}},
		{"blocking with the right", admission.Create, nil, blocking("Pod"), []string{ofPod}, "", []string{everything, ofPod}},
		{"blocking in all namespaces", admission.Create, nil, blocking("NamespaceTemplate"), nil, noBlock, []string{everything, ofTemplate}},
		{"blocking in all namespaces with the right", admission.Create, nil, blocking("NamespaceTemplate"), []string{ofTemplate}, "", []string{everything, ofTemplate}},
		{"blocking two, one with the right", admission.Create, nil, slices.Concat(blocking("Pod"), blocking("NamespaceTemplate")), []string{ofPod}, noBlock, []string{everything, ofPod, ofTemplate}},
		{"blocking an unknown kind", admission.Create, nil, blocking("Nonsense"), nil, noMapping, []string{everything}},
		{"blocking an unknown kind with all rights", admission.Create, nil, blocking("Nonsense"), []string{everything}, "", []string{everything}},
		{"blocking from now on", admission.Update, []metav1.OwnerReference{owner("Pod", "1", nil)}, blocking("Pod"), []string{remove}, noBlock, []string{remove, everything, ofPod}},
		{"blocking as before", admission.Update, slices.Concat(blocking("Pod"), []metav1.OwnerReference{owner("Pod", "2", nil)}), blocking("Pod"), []string{remove}, "", []string{remove}},
		{"blocking another", admission.Update, []metav1.OwnerReference{owner("Pod", "2", new(true))}, blocking("Pod"), []string{remove}, noBlock, []string{remove, everything, ofPod}},
	} {
		t.Run(test.name, func(t *testing.T) {
			var asked []string
			rights := authorizer.AuthorizerFunc(func(_ context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
				resource := a.GetResource()
				if a.GetSubresource() != "" {
					resource += "/" + a.GetSubresource()
				}
				right := fmt.Sprintf("%s %s.%s %s/%s", a.GetVerb(), resource, a.GetAPIGroup(), a.GetNamespace(), a.GetName())
				asked = append(asked, right)
				if slices.Contains(test.allowed, right) {
					return authorizer.DecisionAllow, "", nil
				}
				return authorizer.DecisionNoOpinion, "", nil
			})
			object := &tenancy.Pod{ObjectMeta: metav1.ObjectMeta{OwnerReferences: test.set}}
			var old runtime.Object
			if test.operation != admission.Create {
				old = &tenancy.Pod{ObjectMeta: metav1.ObjectMeta{OwnerReferences: test.before}}
			}
			attributes := admission.NewAttributesRecord(object, old, v1.SchemeGroupVersion.WithKind("Pod"), "a", "p", v1.SchemeGroupVersion.WithResource("pods"), "", test.operation, nil, false, nil)
			err := (&Plugin{authorizer: rights, mapper: mapper}).Validate(t.Context(), attributes, nil)
			if test.want == "" && err != nil || test.want != "" && (!apierrors.IsForbidden(err) || !strings.Contains(err.Error(), test.want)) {
				t.Errorf("got %v, want %q", err, test.want)
			}
			if !slices.Equal(asked, test.wantAsked) {
				t.Errorf("asked about %q, want %q", asked, test.wantAsked)
			}
		})
	}
}
