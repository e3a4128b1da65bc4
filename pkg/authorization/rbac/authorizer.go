// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

// Package rbac decides by the policy of rbac.authorization.k8s.io, as the RBAC
// authorizer of kube-apiserver does.
//
// Decisions read an Index that follows the watches of the four kinds of objects. A
// write to them is answered only when the index has it (see Index.AwaitWrite), so it
// holds for each request to the same server that begins after the answer.
package rbac

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	"github.com/borough-io/borough/pkg/retriable"
)

// syncTimeout is how long a request waits for the policy to be read.
const syncTimeout = 2 * time.Second

// Authorizer allows what the policy of an index allows. It has no opinion on
// anything else. Without a policy it returns an error, which is ServiceUnavailable
// with Retry-After.
type Authorizer struct {
	index *Index
}

var (
	_ authorizer.Authorizer   = &Authorizer{}
	_ authorizer.RuleResolver = &Authorizer{}
)

// NewAuthorizer returns an authorizer by the policy of the index.
func NewAuthorizer(index *Index) *Authorizer { return &Authorizer{index} }

// Authorize implements authorizer.Authorizer. The reason and the errors are those of
// Kubernetes.
func (z *Authorizer) Authorize(ctx context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
	if err := z.awaitSync(ctx); err != nil {
		return authorizer.DecisionNoOpinion, "", err
	}
	if a.GetUser() == nil {
		return authorizer.DecisionNoOpinion, "", nil
	}
	var reason string
	var missing missingRoles
	z.index.mu.RLock()
	defer z.index.mu.RUnlock()
	z.index.visit(a.GetUser(), a.GetNamespace(), func(b *binding, rules []rbacv1.PolicyRule, found bool) bool {
		if !found {
			missing = append(missing, b.ref)
		}
		for i := range rules {
			if ruleAllows(&rules[i], a) {
				reason = "RBAC: allowed by " + b.describe(a.GetUser())
				return false
			}
		}
		return true
	})
	switch {
	case reason != "":
		return authorizer.DecisionAllow, reason, nil
	case len(missing) > 0:
		return authorizer.DecisionNoOpinion, fmt.Sprintf("RBAC: %v", missing.aggregate(roleOf)), nil
	}
	return authorizer.DecisionNoOpinion, "", nil
}

// ConditionsAwareAuthorize implements authorizer.Authorizer: decisions have no
// conditions.
func (z *Authorizer) ConditionsAwareAuthorize(ctx context.Context, a authorizer.Attributes) authorizer.ConditionsAwareDecision {
	return authorizer.ConditionsAwareDecisionFromParts(z.Authorize(ctx, a))
}

// EvaluateConditions implements authorizer.Authorizer: decisions have no conditions.
func (z *Authorizer) EvaluateConditions(context.Context, authorizer.ConditionsAwareDecision, authorizer.ConditionsData) (authorizer.Decision, string, error) {
	return authorizer.DecisionDeny, "", authorizer.ErrorConditionEvaluationNotSupported
}

// Changed returns a channel that is closed when decisions may have changed.
func (z *Authorizer) Changed() <-chan struct{} { return z.index.Changed() }

func (z *Authorizer) awaitSync(ctx context.Context) error {
	if z.index.Synced() == nil {
		return nil
	}
	wait, cancel := context.WithTimeout(ctx, syncTimeout)
	defer cancel()
	if err := z.index.AwaitSync(wait); err != nil {
		unavailable := retriable.NewUnavailable(fmt.Sprintf("the policy is not ready: %v", z.index.Synced()))
		retriable.Note(ctx, unavailable)
		return unavailable
	}
	return nil
}

// RulesFor implements authorizer.RuleResolver. If bindings refer to roles that do not
// exist, it returns the rules with an error that names these roles.
func (z *Authorizer) RulesFor(ctx context.Context, u user.Info, namespace string) ([]authorizer.ResourceRuleInfo, []authorizer.NonResourceRuleInfo, bool, error) {
	rules, missing, err := z.rulesFor(ctx, u, namespace)
	if err != nil {
		return nil, nil, true, err
	}
	var resources []authorizer.ResourceRuleInfo
	var nonResources []authorizer.NonResourceRuleInfo
	for _, rule := range rules {
		if len(rule.Resources) > 0 {
			resources = append(resources, &authorizer.DefaultResourceRuleInfo{
				Verbs: rule.Verbs, APIGroups: rule.APIGroups, Resources: rule.Resources, ResourceNames: rule.ResourceNames,
			})
		}
		if len(rule.NonResourceURLs) > 0 {
			nonResources = append(nonResources, &authorizer.DefaultNonResourceRuleInfo{Verbs: rule.Verbs, NonResourceURLs: rule.NonResourceURLs})
		}
	}
	return resources, nonResources, false, missing.aggregate(roleOf)
}

// rulesFor returns the rules of a user in a namespace, or without a namespace the
// rules that apply everywhere, and the roles that bindings refer to and do not exist.
func (z *Authorizer) rulesFor(ctx context.Context, u user.Info, namespace string) (all []rbacv1.PolicyRule, missing missingRoles, err error) {
	if err := z.awaitSync(ctx); err != nil {
		return nil, nil, err
	}
	z.index.mu.RLock()
	defer z.index.mu.RUnlock()
	z.index.visit(u, namespace, func(b *binding, rules []rbacv1.PolicyRule, found bool) bool {
		all = append(all, rules...)
		if !found {
			missing = append(missing, b.ref)
		}
		return true
	})
	return all, missing, nil
}

// visit calls the function with each binding that applies to a user: those of the
// cluster and then those in the namespace, each once. It ends when the function
// returns false. The lock is held.
func (x *Index) visit(u user.Info, namespace string, f func(b *binding, rules []rbacv1.PolicyRule, found bool) bool) {
	scopes := [...]string{"", namespace}
	for i, scope := range scopes {
		if i > 0 && scope == "" {
			return
		}
		for _, b := range x.applying(u, scope) {
			rules, found := x.rules(b.ref, scope)
			if !f(b, rules, found) {
				return
			}
		}
	}
}

// applying returns the bindings of a namespace that apply to a user, each once. The
// lock is held.
func (x *Index) applying(u user.Info, namespace string) []*binding {
	found := x.bySubject[subjectKey{namespace: namespace, name: u.GetName()}]
	merged := false
	for _, group := range u.GetGroups() {
		more := x.bySubject[subjectKey{namespace: namespace, group: true, name: group}]
		switch {
		case len(more) == 0:
		case len(found) == 0:
			found = more
		default:
			found, merged = slices.Concat(found, more), true
		}
	}
	if merged {
		slices.SortFunc(found, compareNames)
		found = slices.Compact(found)
	}
	return found
}

// rules returns the rules of the role that a binding in a namespace refers to, and
// whether there is such a role. The lock is held.
func (x *Index) rules(ref rbacv1.RoleRef, namespace string) ([]rbacv1.PolicyRule, bool) {
	key := objectKey{name: ref.Name}
	if ref.Kind != "ClusterRole" {
		if namespace == "" {
			return nil, false // a Role is in a namespace
		}
		key.namespace = namespace
	}
	r := x.roles[key]
	if r == nil {
		return nil, false
	}
	return r.rules, true
}

// missingRoles are references to roles that do not exist.
type missingRoles []rbacv1.RoleRef

// aggregate returns the errors. In Kubernetes their resource depends on who reads the
// roles: it is that of the role where it decides, and that of the request where it
// writes.
func (m missingRoles) aggregate(resource func(rbacv1.RoleRef) string) error {
	var errs []error
	for _, ref := range m {
		errs = append(errs, newNoRole(ref, resource))
	}
	return utilerrors.NewAggregate(errs)
}

func newNoRole(ref rbacv1.RoleRef, resource func(rbacv1.RoleRef) string) error {
	return apierrors.NewNotFound(rbacv1.Resource(resource(ref)), ref.Name)
}

func roleOf(ref rbacv1.RoleRef) string { return strings.ToLower(ref.Kind) }

// describe describes the binding and its first subject that the user is, as Kubernetes
// does.
func (b *binding) describe(u user.Info) string {
	kind, name := "ClusterRoleBinding", b.name
	if b.namespace != "" {
		kind, name = "RoleBinding", b.name+"/"+b.namespace
	}
	i := slices.IndexFunc(b.subjects, func(s rbacv1.Subject) bool {
		key, ok := b.subjectKey(&s)
		if key.group {
			return slices.Contains(u.GetGroups(), key.name)
		}
		return ok && key.name == u.GetName()
	})
	var subject rbacv1.Subject
	if i >= 0 {
		subject = b.subjects[i]
	}
	if subject.Kind == rbacv1.ServiceAccountKind {
		subject.Name += "/" + cmp.Or(subject.Namespace, b.namespace)
	}
	return fmt.Sprintf("%s %q of %s %q to %s %q", kind, name, b.ref.Kind, b.ref.Name, subject.Kind, subject.Name)
}
