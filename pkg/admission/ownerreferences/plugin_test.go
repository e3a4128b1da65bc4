// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package ownerreferences

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
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
