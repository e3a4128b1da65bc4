// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package visibility

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/authentication/serviceaccount"
	apiuser "k8s.io/apiserver/pkg/authentication/user"

	"github.com/borough-io/borough/pkg/apis/tenancy"
	v1 "github.com/borough-io/borough/pkg/apis/tenancy/v1"
)

// policy is the policy and the Namespaces at one revision. It decides in the simplest
// way there is, and shares no code with the server.
type policy struct {
	namespaces          map[string]*version
	roles               map[types.NamespacedName]*rbacv1.Role
	clusterRoles        map[string]*rbacv1.ClusterRole
	roleBindings        map[types.NamespacedName]*rbacv1.RoleBinding
	clusterRoleBindings map[string]*rbacv1.ClusterRoleBinding
}

// version is what the test compares of one version of a Namespace.
type version struct {
	uid      types.UID
	revision int64
	content  string
	labels   labels.Set
	deleting bool
}

// identity is who a user is.
type identity struct {
	name   string
	groups []string
}

func newPolicy() *policy {
	return &policy{
		namespaces:          map[string]*version{},
		roles:               map[types.NamespacedName]*rbacv1.Role{},
		clusterRoles:        map[string]*rbacv1.ClusterRole{},
		roleBindings:        map[types.NamespacedName]*rbacv1.RoleBinding{},
		clusterRoleBindings: map[string]*rbacv1.ClusterRoleBinding{},
	}
}

// set sets an object at a revision, or removes it.
func (p *policy) set(obj runtime.Object, revision int64, deleted bool) {
	switch obj := obj.(type) {
	case *v1.Namespace:
		set(p.namespaces, obj.Name, newVersion(&obj.ObjectMeta, revision), deleted)
	case *rbacv1.Role:
		set(p.roles, nameOf(obj), obj, deleted)
	case *rbacv1.ClusterRole:
		set(p.clusterRoles, obj.Name, obj, deleted)
	case *rbacv1.RoleBinding:
		set(p.roleBindings, nameOf(obj), obj, deleted)
	case *rbacv1.ClusterRoleBinding:
		set(p.clusterRoleBindings, obj.Name, obj, deleted)
	}
}

func set[K comparable, V any](all map[K]V, key K, value V, deleted bool) {
	if deleted {
		delete(all, key)
	} else {
		all[key] = value
	}
}

func nameOf(obj metav1.Object) types.NamespacedName {
	return types.NamespacedName{Namespace: obj.GetNamespace(), Name: obj.GetName()}
}

// sees reports whether the user may see a Namespace: the one whose name it is may be
// read, or all may be read, listed or watched.
func (p *policy) sees(who identity, namespace string) bool {
	if slices.Contains(who.groups, apiuser.SystemPrivilegedGroup) {
		return true
	}
	for _, binding := range p.clusterRoleBindings {
		if who.isOneOf(binding.Subjects, "") && showsAny(p.rulesOf(binding.RoleRef, ""), namespace, true) {
			return true
		}
	}
	for _, binding := range p.roleBindings {
		if binding.Namespace == namespace && who.isOneOf(binding.Subjects, namespace) &&
			showsAny(p.rulesOf(binding.RoleRef, namespace), namespace, false) {
			return true
		}
	}
	return false
}

// rulesOf returns the rules of the role that a binding refers to. A ClusterRoleBinding
// has no namespace.
func (p *policy) rulesOf(ref rbacv1.RoleRef, namespace string) []rbacv1.PolicyRule {
	switch {
	case ref.Kind == "ClusterRole":
		return p.aggregated(ref.Name, map[string]bool{})
	case namespace != "":
		if role := p.roles[types.NamespacedName{Namespace: namespace, Name: ref.Name}]; role != nil {
			return role.Rules
		}
	}
	return nil
}

// aggregated returns the rules of a ClusterRole. Those of one that aggregates others
// are the rules of all that its selectors reach, regardless of what is stored in it.
func (p *policy) aggregated(name string, visited map[string]bool) []rbacv1.PolicyRule {
	role := p.clusterRoles[name]
	if role == nil || visited[name] {
		return nil
	}
	visited[name] = true
	if role.AggregationRule == nil {
		return role.Rules
	}
	var rules []rbacv1.PolicyRule
	for _, labelSelector := range role.AggregationRule.ClusterRoleSelectors {
		selector, err := metav1.LabelSelectorAsSelector(&labelSelector)
		if err != nil {
			continue // it selects nothing
		}
		for other, part := range p.clusterRoles {
			if selector.Matches(labels.Set(part.Labels)) {
				rules = append(rules, p.aggregated(other, visited)...)
			}
		}
	}
	return rules
}

// isOneOf reports whether the user is among the subjects of a binding in a namespace.
func (who identity) isOneOf(subjects []rbacv1.Subject, namespace string) bool {
	return slices.ContainsFunc(subjects, func(s rbacv1.Subject) bool {
		switch s.Kind {
		case rbacv1.UserKind:
			return s.Name == who.name
		case rbacv1.GroupKind:
			return slices.Contains(who.groups, s.Name)
		case rbacv1.ServiceAccountKind:
			in := s.Namespace
			if in == "" {
				in = namespace
			}
			return in != "" && serviceaccount.MakeUsername(in, s.Name) == who.name
		}
		return false
	})
}

func showsAny(rules []rbacv1.PolicyRule, namespace string, everywhere bool) bool {
	return slices.ContainsFunc(rules, func(rule rbacv1.PolicyRule) bool { return shows(rule, namespace, everywhere) })
}

// shows reports whether a rule, which applies everywhere or only in the Namespace,
// shows the Namespace. Rules for the core group do, too.
func shows(rule rbacv1.PolicyRule, namespace string, everywhere bool) bool {
	if !hasOrAll(rule.APIGroups, tenancy.GroupName) && !slices.Contains(rule.APIGroups, corev1.GroupName) || !hasOrAll(rule.Resources, "namespaces") {
		return false
	}
	if len(rule.ResourceNames) > 0 && !slices.Contains(rule.ResourceNames, namespace) {
		return false
	}
	return hasOrAll(rule.Verbs, "get") || everywhere && (slices.Contains(rule.Verbs, "list") || slices.Contains(rule.Verbs, "watch"))
}

func hasOrAll(list []string, value string) bool {
	return slices.Contains(list, value) || slices.Contains(list, "*")
}
