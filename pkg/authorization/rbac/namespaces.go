// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package rbac

import (
	"context"
	"iter"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	"github.com/borough-io/borough/pkg/apis/tenancy"
)

// Which Namespaces a user may get. A RoleBinding in a Namespace can grant that for this
// Namespace, and a ClusterRoleBinding for all of them or, by resourceNames, for some.
// A user who may list or watch all Namespaces sees what is in them as well, so that counts
// as the right to get them all, and by resourceNames those that these name.

// Access is the access of a user to a Namespace, by the ClusterRoles that every cluster
// has. 0 is none by them.
type Access int

// The kinds of access. Each includes those before it.
const (
	// AccessCustom is access by other roles.
	AccessCustom Access = iota + 1
	AccessView
	AccessEdit
	AccessAdmin
)

// accessByRole is that of the ClusterRoles.
var accessByRole = map[string]Access{
	"view":          AccessView,
	"edit":          AccessEdit,
	"admin":         AccessAdmin,
	"cluster-admin": AccessAdmin,
}

// namespaceRights is what a role allows on Namespaces.
type namespaceRights struct {
	get, list bool     // all of them; list stands for watch, too
	names     []string // those that may be got, sorted
	listed    []string // those that a ClusterRoleBinding allows to list or watch, sorted
	access    Access
}

func (r *namespaceRights) none() bool { return r.equal(&none) }

func (r *namespaceRights) equal(other *namespaceRights) bool {
	return r.get == other.get && r.list == other.list && r.access == other.access && slices.Equal(r.names, other.names) && slices.Equal(r.listed, other.listed)
}

func (r *namespaceRights) gets(name string) bool {
	if r.get {
		return true
	}
	_, found := slices.BinarySearch(r.names, name)
	return found
}

func rightsToNamespaces(role objectKey, rules []rbacv1.PolicyRule) namespaceRights {
	var rights namespaceRights
	if role.namespace == "" {
		rights.access = accessByRole[role.name]
	}
	for i := range rules {
		rule := &rules[i]
		if !matches(rule.APIGroups, tenancy.GroupName) || !matchesResource(rule.Resources, "namespaces", "") {
			continue
		}
		get, list := matches(rule.Verbs, "get"), matches(rule.Verbs, "list") || matches(rule.Verbs, "watch")
		if len(rule.ResourceNames) == 0 {
			rights.get, rights.list = rights.get || get, rights.list || list
			continue
		}
		// A list has no name, which a rule may name.
		rights.list = rights.list || list && slices.Contains(rule.ResourceNames, "")
		if get {
			rights.names = append(rights.names, rule.ResourceNames...)
		}
		if list {
			rights.listed = append(rights.listed, rule.ResourceNames...)
		}
	}
	rights.names, rights.listed = sortedUnique(rights.names), sortedUnique(rights.listed)
	return rights
}

func sortedUnique(list []string) []string {
	slices.Sort(list)
	return slices.Compact(list)
}

// none is what a role that does not exist allows.
var none namespaceRights

// rightsOf returns what the role of a binding, which may be nil, allows on Namespaces at
// a position.
func (p *policy) rightsOf(b *binding, position int64) *namespaceRights {
	if b != nil && b.At(position) {
		return p.rightsBy(b.to, position)
	}
	return &none
}

// rightsBy returns what a role allows on Namespaces at a position.
func (p *policy) rightsBy(n *namedRole, position int64) *namespaceRights {
	if r := p.at(n, position); r != nil {
		return &r.namespaces
	}
	return &none
}

// ClusterRights are the Namespaces that a user may get by ClusterRoleBindings.
type ClusterRights struct {
	// All is true if they are all Namespaces.
	All bool
	// Names are those that are named, sorted. They need not exist.
	Names []string
	// Access is the highest by ClusterRoleBindings.
	Access Access
}

// Equal reports whether both are the same.
func (r *ClusterRights) Equal(other *ClusterRights) bool {
	return r.All == other.All && r.Access == other.Access && slices.Equal(r.Names, other.Names)
}

// ClusterRights returns those of a user at a position, which has to be in the history
// of the index.
func (x *Index) ClusterRights(subjects []Subject, position int64) ClusterRights {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return x.policy.clusterRights(subjects, position)
}

func (p *policy) clusterRights(subjects []Subject, position int64) ClusterRights {
	var rights ClusterRights
	for _, s := range subjects {
		for b := range p.in(p.subjects[s], "", position) {
			r := p.rightsOf(b, position)
			rights.All = rights.All || r.get || r.list
			rights.Names = append(append(rights.Names, r.names...), r.listed...)
			rights.Access = max(rights.Access, r.access)
		}
	}
	rights.Names = sortedUnique(rights.Names)
	return rights
}

// RightsIn reports whether a user may get a Namespace at a position, which has to be in
// the history of the index, and the highest access. The rights by ClusterRoleBindings
// are not considered.
func (x *Index) RightsIn(namespace string, subjects []Subject, position int64) (get bool, access Access) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	for _, name := range subjects {
		if s := x.policy.subjects[name]; s != nil {
			rights := x.rightsIn(namespace, s, position)
			get, access = get || rights.get, max(access, rights.access)
		}
	}
	return get, access
}

// manyBindings is how many bindings a subject has in a Namespace if its rights by them are
// kept: thousands of lists and watches can ask for those of a group at one position.
const manyBindings = 100

// rightsKey is a subject in a Namespace at a position.
type rightsKey struct {
	subject   *subject
	namespace string
	position  int64
}

// subjectRights are the rights of a subject to a Namespace by its bindings there.
type subjectRights struct {
	get    bool
	access Access
}

// rightsIn returns the rights of a subject to a Namespace at a position. The lock is held.
func (x *Index) rightsIn(namespace string, s *subject, position int64) (rights subjectRights) {
	if len(inNamespace(s.bindings, namespace)) >= manyBindings {
		position = min(position, x.policy.lastChange(namespace)) // since then they are the same
		key := rightsKey{s, namespace, position}
		if known, found := x.kept.Get(key); found {
			return known.(subjectRights)
		}
		defer func() { x.kept.Add(key, rights) }()
	}
	var last *namedRole
	for b := range x.policy.in(s, namespace, position) {
		if b.to == last {
			continue
		}
		last = b.to
		r := x.policy.rightsOf(b, position)
		rights.get, rights.access = rights.get || r.gets(namespace), max(rights.access, r.access)
	}
	return rights
}

// Visible returns the names of the Namespaces that a user may get at a position, which
// has to be in the history of the index, from a name on, sorted: the first size of them, or
// all if size is 0. Those that a ClusterRole names need not exist. If the user may get all
// Namespaces, it returns true instead.
func (x *Index) Visible(subjects []Subject, from string, position int64, size int) (names []string, all bool) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	p := &x.policy
	rights := p.clusterRights(subjects, position)
	if rights.All {
		return nil, true
	}
	first, _ := slices.BinarySearch(rights.Names, from)
	names = rights.Names[first:]
	from = max(from, "\x00") // not those of the cluster
	compare := func(b *binding, namespace string) int { return strings.Compare(b.namespace, namespace) }
	visible := func(b *binding) bool { return p.rightsOf(b, position).gets(b.namespace) }
	for _, s := range subjects {
		bound := p.subjects[s]
		if bound == nil {
			continue
		}
		first, _ := slices.BinarySearchFunc(bound.bindings, from, compare)
		last, found := "", 0
		// Once there are enough, the others come later than these.
		for rest := bound.bindings[first:]; len(rest) > 0 && (found < size || size == 0); {
			b, seen, n := rest[0], false, 1
			switch {
			case b.namespace == last:
			case len(rest) >= manyBindings && rest[manyBindings-1].namespace == b.namespace:
				seen, n = x.rightsIn(b.namespace, bound, position).get, len(inNamespace(rest, b.namespace))
			default:
				seen = visible(b)
			}
			if seen {
				names, last, found = append(names, b.namespace), b.namespace, found+1
			}
			rest = rest[n:]
		}
		for b := range endedAfter(p.past[bound].all, position) {
			if b.namespace >= from && visible(b) {
				names = append(names, b.namespace)
			}
		}
	}
	names = sortedUnique(names)
	if size > 0 {
		names = names[:min(size, len(names))]
	}
	return names, false
}

// Bound returns the subjects of the bindings in a namespace that are in force at a
// position or at the one before, and possibly some more.
func (x *Index) Bound(namespace string, position int64) iter.Seq[Subject] {
	return func(yield func(Subject) bool) {
		x.mu.RLock()
		defer x.mu.RUnlock()
		for _, b := range x.policy.bindings[namespace] {
			if b.To != 0 && b.To < position {
				continue
			}
			for _, s := range b.subjects {
				if !yield(s.Subject) {
					return
				}
			}
		}
	}
}

// Allows reports whether the policy allows a request.
func (x *Index) Allows(ctx context.Context, a authorizer.Attributes) (bool, error) {
	return x.AllowsAt(ctx, a, latest)
}

// AllowsAt reports whether the policy allowed a request at a position, which has to be
// in the history of the index.
func (x *Index) AllowsAt(ctx context.Context, a authorizer.Attributes, position int64) (bool, error) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	by, _, err := x.policy.allows(ctx, a, position)
	return by != nil, err
}
