// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterplugins

import (
	"context"
	"testing"

	arv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apiserver/pkg/admission"
	mutatingwebhook "k8s.io/apiserver/pkg/admission/plugin/webhook/mutating"
	"k8s.io/apiserver/pkg/admission/plugin/webhook/predicates/rules"

	v1 "github.com/borough-io/borough/pkg/apis/tenancy/v1"
)

// recorder is a plugin that keeps the attributes of the last request.
type recorder struct {
	admission.Interface
	last admission.Attributes
}

func (r *recorder) Admit(_ context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	r.last = a
	return nil
}

// TestNamespaceObjects checks what plugins see of requests for Namespaces, as
// docs/in-a-cluster.md says.
func TestNamespaceObjects(t *testing.T) {
	for _, tc := range []struct {
		operation           admission.Operation
		subresource         string
		namespace           string
		cluster, namespaced bool // whether rules with the scope match
	}{
		{admission.Create, "", "", true, false},
		{admission.Update, "", "", true, false},
		{admission.Update, "status", "ns", false, true},
		{admission.Update, "finalize", "ns", false, true},
		{admission.Delete, "", "ns", false, true},
	} {
		plugin := &recorder{}
		handler := Decorator(NewPendingNamespaces()).Decorate(plugin, mutatingwebhook.PluginName).(admission.MutationInterface)
		// The request has no namespace: filters.WithClusterScopedNamespaces removes it.
		request := admission.NewAttributesRecord(&v1.Namespace{}, nil, v1.SchemeGroupVersion.WithKind("Namespace"), "", "ns",
			v1.SchemeGroupVersion.WithResource("namespaces"), tc.subresource, tc.operation, nil, false, nil)
		if err := handler.Admit(t.Context(), request, nil); err != nil {
			t.Fatal(err)
		}
		if got := plugin.last.GetNamespace(); got != tc.namespace {
			t.Errorf("%s %s: namespace %q, want %q", tc.operation, tc.subresource, got, tc.namespace)
		}
		for scope, want := range map[arv1.ScopeType]bool{arv1.ClusterScope: tc.cluster, arv1.NamespacedScope: tc.namespaced, arv1.AllScopes: true} {
			matcher := rules.Matcher{Attr: plugin.last, Rule: arv1.RuleWithOperations{
				Operations: []arv1.OperationType{arv1.OperationAll},
				Rule:       arv1.Rule{APIGroups: []string{v1.GroupName}, APIVersions: []string{"v1"}, Resources: []string{"namespaces", "namespaces/*"}, Scope: &scope},
			}}
			if got := matcher.Matches(); got != want {
				t.Errorf("%s %s: a rule with the scope %s matches: %t, want %t", tc.operation, tc.subresource, scope, got, want)
			}
		}
	}
}
