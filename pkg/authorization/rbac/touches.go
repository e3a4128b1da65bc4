// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package rbac

import (
	"cmp"
	"slices"

	"k8s.io/apimachinery/pkg/util/sets"
)

// Touch is a change of the rights of subjects: to a Namespace, or without one by a
// ClusterRoleBinding. It has the binding that has changed or the role, and not the
// subjects, which may be very many.
type Touch struct {
	Namespace string
	bindingChange
	// both is true if the rights of those have changed, too, that are subjects before and
	// after.
	both bool
	// role is the one whose rights have changed at a position, or nil. It concerns the
	// subjects of all bindings in the namespace that refer to it.
	role     *namedRole
	position int64
	subjects int // of these bindings
}

// Subjects returns how many subjects the bindings have, before the change and after it.
func (t *Touch) Subjects() (n int) {
	for _, b := range []*binding{t.before, t.after} {
		if b != nil {
			n += len(b.subjects)
		}
	}
	return n + t.subjects
}

// Touched returns the subjects whose rights may have changed, each once.
func (x *Index) Touched(t *Touch) []Subject {
	x.mu.RLock()
	defer x.mu.RUnlock()
	var list []Subject
	if t.role != nil {
		seen := map[*subject]struct{}{}
		for _, b := range inNamespace(t.role.bindings, t.Namespace) {
			if !b.At(t.position) {
				continue
			}
			for _, s := range b.subjects {
				if _, twice := seen[s.subject]; !twice {
					seen[s.subject] = struct{}{}
					list = append(list, s.Subject)
				}
			}
		}
	}
	if t.before != nil {
		for _, s := range t.before.subjects {
			if t.both || !x.policy.has(t.after, s.subject) {
				list = append(list, s.Subject)
			}
		}
	}
	if t.after != nil {
		for _, s := range t.after.subjects {
			if !x.policy.has(t.before, s.subject) {
				list = append(list, s.Subject)
			}
		}
	}
	return list
}

// Touches reports whether the rights of one of the subjects may have changed. The change
// has to be in the history of the index.
func (x *Index) Touches(t *Touch, subjects []Subject) bool {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return slices.ContainsFunc(subjects, func(name Subject) bool {
		s := x.policy.subjects[name]
		if s == nil {
			return false
		}
		if t.role != nil {
			return x.policy.refers(s, t)
		}
		before, after := x.policy.has(t.before, s), x.policy.has(t.after, s)
		return before != after || before && t.both
	})
}

// refers reports whether a binding of the subject refers to the role of a change. Both can
// have thousands of others.
func (p *policy) refers(s *subject, t *Touch) bool {
	bindings := inNamespace(t.role.bindings, t.Namespace)
	if len(bindings) <= len(inNamespace(s.bindings, t.Namespace)) {
		return slices.ContainsFunc(bindings, func(b *binding) bool { return b.At(t.position) && p.has(b, s) })
	}
	for b := range p.in(s, t.Namespace, t.position) {
		if b.to == t.role {
			return true
		}
	}
	return false
}

// has reports whether a version of a binding, which may be nil, has the subject.
func (p *policy) has(b *binding, s *subject) bool {
	if b == nil {
		return false
	}
	if b.To == 0 {
		_, found := slices.BinarySearchFunc(s.bindings, b, compareBindings)
		return found
	}
	past := p.past[s].in[b.namespace]
	first, _ := slices.BinarySearchFunc(past, b.To, func(b *binding, to int64) int { return cmp.Compare(b.To, to) })
	for _, other := range past[first:] {
		if other == b || other.To > b.To {
			return other == b
		}
	}
	return false
}

// touches collects what the changes of a position touch.
type touches struct {
	bindings []bindingChange
	roles    sets.Set[objectKey]
}

// bindingChange is a binding before and after a change, or nil.
type bindingChange struct{ before, after *binding }

func (t *touches) addBinding(before, after *binding) {
	if before != after {
		t.bindings = append(t.bindings, bindingChange{before, after})
	}
}

func (t *touches) addRole(key objectKey) { t.roles.Insert(key) }

// list returns what was touched.
func (t *touches) list(p *policy, position int64) []Touch {
	var list []Touch
	for key := range t.roles {
		list = append(list, p.roles[key].touches(p, position)...)
	}
	// Thousands of bindings can refer to one role, with thousands of names.
	type change struct{ before, after *namespaceRights }
	compared := map[change]bool{}
	for _, c := range t.bindings {
		rights := change{p.rightsOf(c.before, position-1), p.rightsOf(c.after, position)}
		changed, found := compared[rights]
		if !found {
			changed = !rights.before.equal(rights.after)
			compared[rights] = changed
		}
		if changed || !rights.before.none() {
			list = append(list, Touch{Namespace: cmp.Or(c.before, c.after).namespace, bindingChange: c, both: changed})
		}
	}
	return list
}

// touches returns what a change of the role at a position touches: one for each namespace
// with bindings that refer to it, of which there may be thousands.
func (n *namedRole) touches(p *policy, position int64) (list []Touch) {
	if p.rightsBy(n, position-1).equal(p.rightsBy(n, position)) {
		return nil
	}
	for _, b := range n.bindings {
		if !b.At(position) {
			continue // see the change of the binding
		}
		if last := len(list) - 1; last < 0 || list[last].Namespace != b.namespace {
			list = append(list, Touch{Namespace: b.namespace, role: n, position: position})
		}
		list[len(list)-1].subjects += len(b.subjects)
	}
	return list
}
