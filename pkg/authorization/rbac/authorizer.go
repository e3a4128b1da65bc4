// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

// Package rbac decides by the policy of rbac.authorization.k8s.io, as the RBAC
// authorizer of kube-apiserver does.
//
// Decisions read an Index that follows the watches of the four kinds of objects. A
// write to them is answered only when the index has it (visibility.Views.AwaitWrite), so it
// holds for each request to the same server that begins after the answer.
package rbac

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"sort"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/authentication/serviceaccount"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
)

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
	if err := z.index.RequireSync(ctx); err != nil {
		return authorizer.DecisionNoOpinion, "", err
	}
	if a.GetUser() == nil {
		return authorizer.DecisionNoOpinion, "", nil
	}
	z.index.mu.RLock()
	by, missing, err := z.index.policy.allows(ctx, a, latest)
	z.index.mu.RUnlock() // a reason can be long
	switch {
	case err != nil:
		return authorizer.DecisionNoOpinion, "", err
	case by != nil:
		return authorizer.DecisionAllow, "RBAC: allowed by " + by.describe(a.GetUser()), nil
	}
	if err := missing.aggregate(roleOf); err != nil {
		return authorizer.DecisionNoOpinion, fmt.Sprintf("RBAC: %v", err), nil
	}
	return authorizer.DecisionNoOpinion, "", nil
}

// allows returns the binding that allows a request at a position, or nil and the roles
// that bindings refer to and do not exist. A user may have thousands of bindings to one
// large role, which is read once.
func (p *policy) allows(ctx context.Context, a authorizer.Attributes, position int64) (by *binding, missing missingRoles, err error) {
	w := &wanted{Attributes: a}
	read := make(roleSet, 8) // on the stack
	var last *namedRole
	for b, r := range p.applying(a.GetUser(), a.GetNamespace(), position) {
		if b.to == last {
			continue
		}
		last = b.to
		switch {
		case ctx.Err() != nil:
			return nil, missing, context.Cause(ctx)
		case r != nil && r.brief:
		case !read.add(b.to):
			continue
		}
		switch {
		case r == nil:
			missing.add(b.role)
		case r.allows(w):
			return b, missing, nil
		}
	}
	return nil, missing, nil
}

// roleSet is a set of roles.
type roleSet map[*namedRole]struct{}

// add reports whether the role was not in the set before.
func (s roleSet) add(n *namedRole) bool {
	before := len(s)
	s[n] = struct{}{}
	return len(s) > before
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

// Changed returns a channel that is closed when decisions in one of the namespaces, or
// about the cluster, may have changed.
func (z *Authorizer) Changed(namespaces ...string) <-chan struct{} {
	return z.index.Changed(namespaces...)
}

// maxHeld is how many strings, as sizeOf counts them, the rules of a user have that are read
// for one request. A review encodes each of them, a comparison hashes them, and a user may
// have thousands of roles.
const maxHeld = 100_000

// RulesFor implements authorizer.RuleResolver. If bindings refer to roles that do not
// exist, it returns the rules with an error that names these roles. Rules that are too
// many are incomplete, and the error says so.
func (z *Authorizer) RulesFor(ctx context.Context, u user.Info, namespace string) ([]authorizer.ResourceRuleInfo, []authorizer.NonResourceRuleInfo, bool, error) {
	rules, complete, missing, err := z.rulesFor(ctx, u, namespace)
	if err != nil {
		return nil, nil, true, err
	}
	if !complete {
		err = fmt.Errorf("the rules of the user have more than %d verbs, groups, resources, names and URLs, the others are missing", maxHeld)
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
	return resources, nonResources, !complete, utilerrors.NewAggregate([]error{err, missing.aggregate(roleOf)})
}

// rulesFor returns the rules of a user in a namespace, or without a namespace the
// rules that apply everywhere, and the roles that bindings refer to and do not exist.
// complete is whether these are all: rules have at most maxHeld strings, as sizeOf counts them.
func (z *Authorizer) rulesFor(ctx context.Context, u user.Info, namespace string) (rules []rbacv1.PolicyRule, complete bool, missing missingRoles, err error) {
	if err := z.index.RequireSync(ctx); err != nil {
		return nil, false, missing, err
	}
	z.index.mu.RLock()
	defer z.index.mu.RUnlock()
	read := make(roleSet, 8) // on the stack
	left := maxHeld
	for b, r := range z.index.policy.applying(u, namespace, latest) {
		switch {
		case ctx.Err() != nil:
			return nil, false, missing, context.Cause(ctx)
		case !read.add(b.to):
			continue
		case r == nil:
			missing.add(b.role)
			continue
		}
		for i := range r.effective {
			if left -= sizeOf(&r.effective[i]); left < 0 {
				return rules, false, missing, nil
			}
			rules = append(rules, r.effective[i])
		}
	}
	return rules, true, missing, nil
}

// applying returns the bindings that apply to a user in a namespace at a position, possibly
// some twice, and the roles to which they refer, which are nil if they do not exist: those of
// the cluster come first, and then those in the namespace. The lock is held.
func (p *policy) applying(u user.Info, namespace string, position int64) iter.Seq2[*binding, *role] {
	return func(yield func(*binding, *role) bool) {
		scopes := []string{"", namespace}
		if namespace == "" {
			scopes = scopes[:1]
		}
		subjects := p.subjectsOf(u)
		for _, scope := range scopes {
			for _, s := range subjects {
				for b := range p.in(s, scope, position) {
					if !yield(b, p.at(b.to, position)) {
						return
					}
				}
			}
		}
	}
}

// subjectsOf returns the subjects of bindings that a user is: the user, and then the groups.
// The lock is held.
func (p *policy) subjectsOf(u user.Info) []*subject {
	var subjects []*subject
	if s := p.subjects[Subject{Name: u.GetName()}]; s != nil {
		subjects = append(subjects, s)
	}
	// A SubjectAccessReview may have thousands of groups, also one repeatedly.
	seen := make(map[*subject]struct{}, 8) // on the stack
	for _, group := range u.GetGroups() {
		s := p.subjects[Subject{Group: true, Name: group}]
		if _, twice := seen[s]; twice || s == nil {
			continue
		}
		seen[s] = struct{}{}
		subjects = append(subjects, s)
	}
	return subjects
}

// in returns the bindings of a subject, which may be nil, in a namespace at a position: those
// that are in force by their names, and then those that have ended since. The lock is held.
func (p *policy) in(s *subject, namespace string, position int64) iter.Seq[*binding] {
	return func(yield func(*binding) bool) {
		if s == nil {
			return
		}
		for _, b := range inNamespace(s.bindings, namespace) {
			if b.From <= position && !yield(b) {
				return
			}
		}
		if position == latest {
			return
		}
		for b := range endedAfter(p.past[s].in[namespace], position) {
			if !yield(b) {
				return
			}
		}
	}
}

// inNamespace returns the bindings in a namespace of a list in the order of compareBindings.
func inNamespace(list []*binding, namespace string) []*binding {
	first, _ := slices.BinarySearchFunc(list, namespace, func(b *binding, namespace string) int { return strings.Compare(b.namespace, namespace) })
	rest := list[first:]
	return rest[:sort.Search(len(rest), func(i int) bool { return rest[i].namespace != namespace })]
}

// endedAfter returns which of the versions of bindings, in the order in which they have ended,
// were in force at a position and have ended since.
func endedAfter(past []*binding, position int64) iter.Seq[*binding] {
	return func(yield func(*binding) bool) {
		for i := len(past) - 1; i >= 0 && past[i].To > position; i-- {
			if past[i].From <= position && !yield(past[i]) {
				return
			}
		}
	}
}

// maxMissingRoles is how many roles that do not exist are named.
const maxMissingRoles = 100

// missingRoles are references to roles that do not exist.
type missingRoles struct {
	named []roleRef
	more  int
}

func (m *missingRoles) add(ref roleRef) {
	if len(m.named) == maxMissingRoles {
		m.more++
		return
	}
	m.named = append(m.named, ref)
}

// aggregate returns the errors, or nil if there are none. In Kubernetes their resource
// depends on who reads the roles: it is that of the role where it decides, and that of the
// request where it writes.
func (m *missingRoles) aggregate(resource func(roleRef) string) error {
	var errs []error
	for _, ref := range m.named {
		errs = append(errs, newNoRole(ref, resource))
	}
	if m.more > 0 {
		errs = append(errs, fmt.Errorf("%d more roles not found", m.more))
	}
	return utilerrors.NewAggregate(errs)
}

func newNoRole(ref roleRef, resource func(roleRef) string) error {
	return apierrors.NewNotFound(rbacv1.Resource(resource(ref)), ref.name)
}

func roleOf(ref roleRef) string { return strings.ToLower(ref.kind) }

// describe describes the binding and its first subject that the user is, as Kubernetes
// does.
func (b *binding) describe(u user.Info) string {
	kind, name := "ClusterRoleBinding", b.name
	if b.namespace != "" {
		kind, name = "RoleBinding", b.name+"/"+b.namespace
	}
	groups := sets.New(u.GetGroups()...)
	i := slices.IndexFunc(b.subjects, func(s boundSubject) bool {
		if s.Group {
			return groups.Has(s.Name)
		}
		return s.Name == u.GetName()
	})
	var subjectKind, subjectName string
	if i >= 0 {
		subjectKind, subjectName = b.subjects[i].describe()
	}
	return fmt.Sprintf("%s %q of %s %q to %s %q", kind, name, b.role.kind, b.role.name, subjectKind, subjectName)
}

// describe returns the kind of the subject, and its name as Kubernetes describes it.
func (s boundSubject) describe() (kind, name string) {
	switch {
	case s.Group:
		return rbacv1.GroupKind, s.Name
	case s.account:
		namespace, name, _ := serviceaccount.SplitUsername(s.Name)
		return rbacv1.ServiceAccountKind, name + "/" + namespace
	}
	return rbacv1.UserKind, s.Name
}
