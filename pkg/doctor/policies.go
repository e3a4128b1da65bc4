// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/borough-io/borough/pkg/apis/tenancy"
	v1 "github.com/borough-io/borough/pkg/apis/tenancy/v1"
)

// policy is what validating and mutating admission policies have in common.
type policy struct {
	kind, name string
	paramKind  *admissionv1.ParamKind
	rules      []admissionv1.NamedRuleWithOperations
}

// appliesToUs reports whether a rule can match Namespaces of Borough, or objects in them.
func (p policy) appliesToUs() bool {
	return slices.ContainsFunc(p.rules, func(rule admissionv1.NamedRuleWithOperations) bool {
		return (slices.Contains(rule.APIGroups, v1.GroupName) || slices.Contains(rule.APIGroups, "*")) &&
			slices.ContainsFunc(rule.Resources, isOurs)
	})
}

// isOurs reports whether the resource of a rule can be one of Borough.
func isOurs(resource string) bool {
	resource, _, _ = strings.Cut(resource, "/")
	return resource == "*" || resource == "namespaces" ||
		slices.Contains(tenancy.GroupResources(tenancy.NamespacedKinds()), tenancy.Resource(resource))
}

// binding is what the bindings of both have in common.
type binding struct {
	name, policy string
	paramRef     *admissionv1.ParamRef
}

// checkPolicies warns about bindings whose parameters are in the namespace of the
// request. For an object of Borough that is the namespace of the cluster with the name
// of its Namespace: parameters are objects of the cluster.
func (x *examination) checkPolicies(ctx context.Context) Finding {
	policies, bindings, err := x.policies(ctx)
	if err != nil {
		return skipped("cannot list admission policies: %s", oneLine(err.Error()))
	}
	byName := map[string]policy{}
	for _, p := range policies {
		if p.paramKind != nil && p.appliesToUs() {
			byName[p.kind+" "+p.name] = p
		}
	}
	var found []string
	for _, b := range bindings {
		p, applies := byName[b.policy]
		if !applies || b.paramRef == nil || b.paramRef.Namespace != "" {
			continue
		}
		namespaced, err := x.namespaced(ctx, p.paramKind)
		if err != nil {
			return skipped("cannot discover %s %s: %s", p.paramKind.APIVersion, p.paramKind.Kind, oneLine(err.Error()))
		}
		if namespaced {
			found = append(found, fmt.Sprintf("%s of the %s", b.name, b.policy))
		}
	}
	if len(found) > 0 {
		return warning("for an object of Borough, the parameters of these bindings are in the namespace of the cluster that has the name of the object's Namespace: "+oneLine(strings.Join(found, ", ")),
			"set spec.paramRef.namespace in the binding, unless those who can write to that namespace of the cluster may decide about the Namespace")
	}
	return ok("no policy reads parameters for objects of Borough from namespaces of the cluster with the same name")
}

// policies returns the policies and bindings of the cluster. A cluster can lack the
// API of mutating policies.
func (x *examination) policies(ctx context.Context) (policies []policy, bindings []binding, err error) {
	const validating, mutating = "ValidatingAdmissionPolicy", "MutatingAdmissionPolicy"
	client, all := x.client.AdmissionregistrationV1(), metav1.ListOptions{}
	vp, err := client.ValidatingAdmissionPolicies().List(ctx, all)
	if err != nil {
		return nil, nil, err
	}
	for _, p := range vp.Items {
		policies = append(policies, policy{validating, p.Name, p.Spec.ParamKind, rulesOf(p.Spec.MatchConstraints)})
	}
	vb, err := client.ValidatingAdmissionPolicyBindings().List(ctx, all)
	if err != nil {
		return nil, nil, err
	}
	for _, b := range vb.Items {
		bindings = append(bindings, binding{b.Name, validating + " " + b.Spec.PolicyName, b.Spec.ParamRef})
	}
	mp, err := client.MutatingAdmissionPolicies().List(ctx, all)
	if apierrors.IsNotFound(err) {
		return policies, bindings, nil
	}
	if err != nil {
		return nil, nil, err
	}
	for _, p := range mp.Items {
		policies = append(policies, policy{mutating, p.Name, p.Spec.ParamKind, rulesOf(p.Spec.MatchConstraints)})
	}
	mb, err := client.MutatingAdmissionPolicyBindings().List(ctx, all)
	if err != nil {
		return nil, nil, err
	}
	for _, b := range mb.Items {
		bindings = append(bindings, binding{b.Name, mutating + " " + b.Spec.PolicyName, b.Spec.ParamRef})
	}
	return policies, bindings, nil
}

func rulesOf(constraints *admissionv1.MatchResources) []admissionv1.NamedRuleWithOperations {
	if constraints == nil {
		return nil
	}
	return constraints.ResourceRules
}

func (x *examination) namespaced(ctx context.Context, kind *admissionv1.ParamKind) (bool, error) {
	resources, err := x.client.Discovery().ServerResourcesForGroupVersionWithContext(ctx, kind.APIVersion)
	if err != nil {
		return false, err
	}
	for _, r := range resources.APIResources {
		if r.Kind == kind.Kind && !strings.Contains(r.Name, "/") {
			return r.Namespaced, nil
		}
	}
	return false, errors.New("the API does not have it")
}
