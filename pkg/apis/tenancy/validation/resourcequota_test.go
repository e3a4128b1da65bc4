// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package validation_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/borough-io/borough/pkg/apis/tenancy"
	"github.com/borough-io/borough/pkg/apis/tenancy/validation"
)

func resourceQuota(spec corev1.ResourceQuotaSpec) *tenancy.ResourceQuota {
	return &tenancy.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Name: "quota", Namespace: "ns"}, Spec: spec}
}

// scoped returns a quota with scopes, and a selector if there are expressions.
func scoped(hard corev1.ResourceList, scopes []corev1.ResourceQuotaScope, expressions ...corev1.ScopedResourceSelectorRequirement) corev1.ResourceQuotaSpec {
	spec := corev1.ResourceQuotaSpec{Hard: hard, Scopes: scopes}
	if len(expressions) > 0 {
		spec.ScopeSelector = &corev1.ScopeSelector{MatchExpressions: expressions}
	}
	return spec
}

// The differential tests compare the rules with those of Kubernetes. Here are the
// limits that Kubernetes does not have, and an example of each rule.
func TestValidateResourceQuota(t *testing.T) {
	type scopes = []corev1.ResourceQuotaScope
	type expression = corev1.ScopedResourceSelectorRequirement
	pods := quantities("pods", "1")
	values := func(n int) []string { return slices.Repeat([]string{"a"}, n) }
	hard := func(n int) corev1.ResourceList {
		list := corev1.ResourceList{}
		for i := range n {
			list[corev1.ResourceName(fmt.Sprintf("example.com/%d", i))] = resource.MustParse("1")
		}
		return list
	}
	inClass := func(n int) expression {
		return expression{ScopeName: corev1.ResourceQuotaScopePriorityClass, Operator: corev1.ScopeSelectorOpIn, Values: values(n)}
	}
	for name, test := range map[string]struct {
		spec corev1.ResourceQuotaSpec
		want []string
	}{
		"no limits": {},
		"every resource that is counted": {spec: corev1.ResourceQuotaSpec{Hard: quantities(
			"pods", "1", "count/pods", "1", "count/roles.rbac.authorization.k8s.io", "1", "resourcequotas", "1", "cpu", "500m", "memory", "1Gi", "ephemeral-storage", "1",
			"requests.cpu", "1", "limits.cpu", "1", "hugepages-2Mi", "2Mi", "requests.hugepages-2Mi", "2Mi", "requests.example.com/gpu", "1",
		)}},
		"names": {
			spec: corev1.ResourceQuotaSpec{Hard: quantities("gpu", "1", "storage", "1")},
			want: []string{
				`spec.hard[gpu]: Invalid value: "gpu": must be a standard resource type or fully qualified`,
				`spec.hard[gpu]: Invalid value: "gpu": must be a standard resource for quota`,
				`spec.hard[storage]: Invalid value: "storage": must be a standard resource for quota`,
			},
		},
		"quantities": {
			spec: corev1.ResourceQuotaSpec{Hard: quantities("cpu", "-1", "pods", "1500m")},
			want: []string{
				`spec.hard[cpu]: Invalid value: "-1": must be greater than or equal to 0`,
				`spec.hard[pods]: Invalid value: "1500m": must be an integer`,
			},
		},
		"scopes": {spec: scoped(pods, scopes{corev1.ResourceQuotaScopeTerminating, corev1.ResourceQuotaScopeNotBestEffort})},
		"a scope that does not exist": {
			spec: scoped(pods, scopes{"Other"}),
			want: []string{`spec.scopes: Invalid value: ["Other"]: unsupported scope`},
		},
		"a scope that does not fit the resource": {
			spec: scoped(quantities("cpu", "1", "pods", "1"), scopes{corev1.ResourceQuotaScopeBestEffort}),
			want: []string{`spec.scopes: Invalid value: ["BestEffort"]: unsupported scope applied to resource`},
		},
		"scopes that conflict": {
			spec: scoped(pods, scopes{corev1.ResourceQuotaScopeTerminating, corev1.ResourceQuotaScopeNotTerminating}),
			want: []string{`spec.scopes: Invalid value: ["Terminating","NotTerminating"]: conflicting scopes`},
		},
		"a selector": {spec: scoped(pods, nil, inClass(1), expression{ScopeName: corev1.ResourceQuotaScopeBestEffort, Operator: corev1.ScopeSelectorOpExists})},
		"operators and values": {
			spec: scoped(pods, nil,
				inClass(0),
				expression{ScopeName: corev1.ResourceQuotaScopePriorityClass, Operator: corev1.ScopeSelectorOpExists, Values: values(1)},
				expression{ScopeName: corev1.ResourceQuotaScopePriorityClass, Operator: "Equals"},
				expression{ScopeName: corev1.ResourceQuotaScopeTerminating, Operator: corev1.ScopeSelectorOpDoesNotExist},
			),
			want: []string{
				"spec.scopeSelector.matchExpressions.values: Required value: must be at least one value when `operator` is 'In' or 'NotIn' for scope selector",
				"spec.scopeSelector.matchExpressions.values: Invalid value: [\"a\"]: must be no value when `operator` is 'Exist' or 'DoesNotExist' for scope selector",
				`spec.scopeSelector.matchExpressions.operator: Invalid value: "Equals": not a valid selector operator`,
				`spec.scopeSelector.matchExpressions.operator: Invalid value: "DoesNotExist": must be 'Exists' when scope is any of ResourceQuotaScopeTerminating, ResourceQuotaScopeNotTerminating, ResourceQuotaScopeBestEffort, ResourceQuotaScopeNotBestEffort or ResourceQuotaScopeCrossNamespacePodAffinity`,
			},
		},
		"the maximum of resources": {spec: corev1.ResourceQuotaSpec{Hard: hard(200)}},
		"too many resources": {
			spec: corev1.ResourceQuotaSpec{Hard: hard(201)},
			want: []string{"spec.hard: Too many: 201: must have at most 200 items"},
		},
		"the maximum of scopes": {spec: scoped(pods, slices.Repeat(scopes{corev1.ResourceQuotaScopeTerminating}, 50))},
		"too many scopes": {
			spec: scoped(pods, slices.Repeat(scopes{corev1.ResourceQuotaScopeTerminating}, 51)),
			want: []string{"spec.scopes: Too many: 51: must have at most 50 items"},
		},
		"the maximum of expressions": {spec: scoped(pods, nil, slices.Repeat([]expression{inClass(1)}, 50)...)},
		"too many expressions": {
			spec: scoped(pods, nil, slices.Repeat([]expression{inClass(1)}, 51)...),
			want: []string{"spec.scopeSelector.matchExpressions: Too many: 51: must have at most 50 items"},
		},
		"the maximum of values": {spec: scoped(pods, nil, inClass(200))},
		"too many values": {
			spec: scoped(pods, nil, inClass(201)),
			want: []string{"spec.scopeSelector.matchExpressions.values: Too many: 201: must have at most 200 items"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, messages(validation.ValidateResourceQuota(resourceQuota(test.spec)))); diff != "" {
				t.Errorf("-want +got\n%s", diff)
			}
		})
	}
}

func TestValidateResourceQuotaUpdate(t *testing.T) {
	type scopes = []corev1.ResourceQuotaScope
	const immutable = "field is immutable"
	both := scopes{corev1.ResourceQuotaScopeTerminating, corev1.ResourceQuotaScopeBestEffort}
	pods := quantities("pods", "1")
	for name, test := range map[string]struct {
		spec corev1.ResourceQuotaSpec
		want []string
	}{
		"other limits":              {spec: scoped(quantities("count/pods", "2"), both)},
		"scopes in another order":   {spec: scoped(pods, scopes{both[1], both[0], both[1]})},
		"another selector":          {spec: scoped(pods, both, corev1.ScopedResourceSelectorRequirement{ScopeName: corev1.ResourceQuotaScopePriorityClass, Operator: corev1.ScopeSelectorOpExists})},
		"a scope less":              {spec: scoped(pods, both[:1]), want: []string{`spec.scopes: Invalid value: ["Terminating"]: ` + immutable}},
		"another scope":             {spec: scoped(pods, scopes{both[0], corev1.ResourceQuotaScopeNotBestEffort}), want: []string{`spec.scopes: Invalid value: ["Terminating","NotBestEffort"]: ` + immutable}},
		"a limit that is not valid": {spec: scoped(quantities("pods", "-1"), both), want: []string{`spec.hard[pods]: Invalid value: "-1": must be greater than or equal to 0`}},
	} {
		t.Run(name, func(t *testing.T) {
			stored, changed := resourceQuota(scoped(pods, both)), resourceQuota(test.spec)
			stored.ResourceVersion, changed.ResourceVersion = "1", "1"
			if diff := cmp.Diff(test.want, messages(validation.ValidateResourceQuotaUpdate(changed, stored))); diff != "" {
				t.Errorf("-want +got\n%s", diff)
			}
		})
	}
}
