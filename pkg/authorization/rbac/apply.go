// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package rbac

import (
	"iter"
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/borough-io/borough/pkg/history"
)

// Change is a change of one object of the policy.
type Change struct {
	Resource        schema.GroupResource
	Namespace, Name string
	// Object is a Role, RoleBinding, ClusterRole or ClusterRoleBinding, or nil if it
	// does not exist any more.
	Object runtime.Object
}

// Reset replaces the policy and its history by the objects at a position.
func (x *Index) Reset(position int64, objects iter.Seq[Change]) {
	fresh := newPolicy(x.policy.effective) // which never changes
	for change := range objects {
		// In force at each position of the history, which begins at this one.
		fresh.set(0, &change)
	}
	fresh.aggregate(0)
	fresh.trim(0, 0)
	fresh.floor, fresh.changed = position, position
	x.mu.Lock()
	x.policy = fresh
	x.kept.Clear() // its keys refer to the one before
	x.signals.notify("")
	x.mu.Unlock()
	x.reached.Reach(position)
}

// Apply makes all changes of a position, and returns whose rights to Namespaces may
// have changed. Positions have to grow.
func (x *Index) Apply(position int64, changes []Change) []Touch {
	x.mu.Lock()
	touched := touches{roles: sets.New[objectKey]()}
	aggregate := false
	namespaces := make([]string, len(changes))
	for i := range changes {
		namespaces[i] = changes[i].Namespace
		aggregate = x.policy.change(position, &changes[i], &touched) || aggregate
	}
	if aggregate {
		for _, name := range x.policy.aggregate(position) {
			touched.addRole(name)
		}
	}
	list := touched.list(&x.policy, position)
	x.policy.trim(maxEnded, maxEndedBytes)
	x.signals.notify(namespaces...)
	x.mu.Unlock()
	x.reached.Reach(position)
	return list
}

// Advance records that there are no further changes until a position.
func (x *Index) Advance(position int64) { x.reached.Reach(position) }

// How much is kept of what has ended. A small change of a large object keeps another
// large version of it.
const (
	maxEnded      = 50_000    // versions
	maxEndedBytes = 128 << 20 // about
)

// Floor returns the position at which the history begins.
func (x *Index) Floor() int64 {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return x.policy.floor
}

// trim removes versions in the order in which they have ended, until no more than a
// number and a size are left.
func (p *policy) trim(keep, bytes int) {
	for len(p.ended) > keep || p.endedBytes > bytes {
		first := p.ended[0]
		p.ended[0] = ended{}
		p.ended = p.ended[1:]
		p.endedBytes -= first.bytes
		p.floor = first.at
		if first.binding != nil {
			p.removeBinding(first.binding)
		} else if n := p.roles[first.role]; n != nil && p.pastRoles.Trim(first.role, n.last, first.at) {
			n.last = nil
			p.removeUnused(n)
		}
	}
}

// change makes a change, and reports whether rules have to be aggregated.
func (p *policy) change(position int64, change *Change, touched *touches) (aggregate bool) {
	key := objectKey{change.Namespace, change.Name}
	if key.namespace == "" {
		p.changed = position
	} else {
		p.changedIn[shardOf(key.namespace)] = position
	}
	switch change.Resource.Resource {
	case "roles", "clusterroles":
		old := p.role(key)
		aggregate = p.set(position, change)
		if updated := p.role(key); updated != old {
			touched.addRole(key)
		}
	default:
		before := p.binding(key)
		p.set(position, change)
		touched.addBinding(before, p.binding(key))
	}
	return aggregate
}

// set sets an object from a position on, and reports whether rules have to be
// aggregated.
func (p *policy) set(position int64, change *Change) (aggregate bool) {
	key := objectKey{change.Namespace, change.Name}
	switch obj := change.Object.(type) {
	case *rbacv1.Role:
		p.setRole(position, key, &role{rules: obj.Rules})
	case *rbacv1.ClusterRole:
		updated := &role{rules: obj.Rules, labels: obj.Labels}
		if obj.AggregationRule != nil {
			updated.selectors = selectors(obj.AggregationRule)
			updated.rules, updated.stored = nil, obj.Rules
		}
		aggregate = p.affectsAggregation(p.role(key), updated)
		p.setRole(position, key, updated)
	case *rbacv1.RoleBinding:
		p.setBinding(position, key, obj.RoleRef, obj.Subjects)
	case *rbacv1.ClusterRoleBinding:
		p.setBinding(position, key, obj.RoleRef, obj.Subjects)
	case nil:
		switch change.Resource.Resource {
		case "roles", "clusterroles":
			aggregate = p.affectsAggregation(p.role(key), nil)
			p.setRole(position, key, nil)
		default:
			p.endBinding(position, p.binding(key))
		}
	}
	return aggregate
}

// setRole begins a version of a role, or only ends the last one if r is nil.
func (p *policy) setRole(position int64, key objectKey, r *role) {
	old := p.role(key)
	if old != nil && r != nil && old.sameAs(r) {
		old.stored = r.stored // which decisions do not depend on
		return
	}
	if old != nil {
		old.To = position
		p.addEnded(ended{at: position, role: key, bytes: old.size()})
	}
	delete(p.aggregating, key)
	if r == nil {
		return
	}
	r.From = position
	p.setRules(key, r, r.rules)
	n := p.named(key)
	if n.last != nil {
		p.pastRoles.Add(key, n.last)
	}
	n.last = r
	if r.selectors != nil {
		p.aggregating[key] = struct{}{}
	}
}

// setRules sets the rules of a version of a role.
func (p *policy) setRules(key objectKey, r *role, rules []rbacv1.PolicyRule) {
	r.rules, r.effective = rules, p.effective(rules)
	size := 0
	for i := range r.effective {
		size += sizeOf(&r.effective[i])
	}
	if r.brief, r.index = size <= briefRole, nil; size > smallRole {
		r.index = newRuleIndex(r.effective)
	}
	r.namespaces = rightsToNamespaces(key, r.effective)
}

// sameAs reports whether decisions are the same by both roles. Selectors are compared
// by their rules, which aggregate sets again.
func (r *role) sameAs(other *role) bool {
	return r.selectors == nil && other.selectors == nil &&
		labels.Equals(r.labels, other.labels) && equality.Semantic.DeepEqual(r.rules, other.rules)
}

// binding returns the version of a binding that has not ended, or nil.
func (p *policy) binding(key objectKey) *binding {
	list := p.bindings[key.namespace]
	// The last version of the name is before the first of the next one.
	i, _ := slices.BinarySearchFunc(list, &binding{objectKey: key, Lifetime: history.Lifetime{From: latest}}, compareBindings)
	if i == 0 || list[i-1].name != key.name || list[i-1].To != 0 {
		return nil
	}
	return list[i-1]
}

// setBinding begins a version of a binding.
func (p *policy) setBinding(position int64, key objectKey, ref rbacv1.RoleRef, subjects []rbacv1.Subject) {
	b := &binding{Lifetime: history.Lifetime{From: position}, objectKey: key, role: roleRef{ref.Kind, ref.Name}}
	b.subjects = make([]boundSubject, 0, len(subjects))
	seen := make(map[Subject]struct{}, len(subjects))
	for i := range subjects {
		name, account, ok := subjectOf(&subjects[i], key.namespace)
		if _, twice := seen[name]; !ok || twice {
			continue
		}
		seen[name] = struct{}{}
		s := p.subjects[name]
		if s == nil {
			s = &subject{Subject: name}
		}
		b.subjects = append(b.subjects, boundSubject{s, account})
	}
	old := p.binding(key)
	if old != nil && old.role == b.role && slices.Equal(old.subjects, b.subjects) {
		return
	}
	p.endBinding(position, old)
	if others := p.bindings[b.namespace]; len(others) > 0 {
		b.namespace = others[0].namespace // the same, but once in memory
	}
	b.to = p.named(b.roleKey())
	if others := b.to.bindings; len(others) > 0 {
		b.role = others[0].role // the same, but with its strings once in memory
	}
	b.to.bindings = insert(b.to.bindings, b)
	p.bindings[b.namespace] = insert(p.bindings[b.namespace], b)
	for _, s := range b.subjects {
		p.subjects[s.Subject] = s.subject
		s.bindings = insert(s.bindings, b)
	}
}

// endBinding ends a version of a binding, unless it is nil.
func (p *policy) endBinding(position int64, b *binding) {
	if b == nil {
		return
	}
	b.To = position
	for _, s := range b.subjects {
		s.bindings = remove(s.bindings, b)
		past := p.past[s.subject]
		if past.in == nil {
			past.in = map[string][]*binding{}
		}
		past.all, past.in[b.namespace] = append(past.all, b), append(past.in[b.namespace], b)
		p.past[s.subject] = past
	}
	p.addEnded(ended{at: position, binding: b, bytes: b.size()})
}

func (p *policy) addEnded(e ended) {
	p.ended = append(p.ended, e)
	p.endedBytes += e.bytes
}

// removeBinding removes the version of a binding that has ended first.
func (p *policy) removeBinding(b *binding) {
	if list := remove(p.bindings[b.namespace], b); len(list) > 0 {
		p.bindings[b.namespace] = list
	} else {
		delete(p.bindings, b.namespace)
	}
	b.to.bindings = remove(b.to.bindings, b)
	p.removeUnused(b.to)
	for _, s := range b.subjects {
		past := p.past[s.subject]
		if list := withoutFirst(past.in[b.namespace]); len(list) > 0 {
			past.in[b.namespace] = list
		} else {
			delete(past.in, b.namespace)
		}
		if past.all = withoutFirst(past.all); len(past.all) > 0 {
			p.past[s.subject] = past
			continue
		}
		if delete(p.past, s.subject); len(s.bindings) == 0 {
			delete(p.subjects, s.Subject)
		}
	}
}

// withoutFirst returns the list without its first binding, which it no longer refers to.
func withoutFirst(list []*binding) []*binding {
	list[0] = nil
	return list[1:]
}

func insert(list []*binding, b *binding) []*binding {
	i, _ := slices.BinarySearchFunc(list, b, compareBindings)
	return slices.Insert(list, i, b)
}

func remove(list []*binding, b *binding) []*binding {
	if i, found := slices.BinarySearchFunc(list, b, compareBindings); found {
		return slices.Delete(list, i, i+1)
	}
	return list
}

// roleKey returns the key of the role that the binding refers to. No role has the key
// if a ClusterRoleBinding refers to a Role.
func (b *binding) roleKey() objectKey {
	switch {
	case b.role.kind == "ClusterRole":
		return objectKey{name: b.role.name}
	case b.namespace == "":
		return objectKey{namespace: "/", name: b.role.name}
	}
	return objectKey{b.namespace, b.role.name}
}

// selectors returns the selectors of an aggregation rule. Validation has accepted
// them; one that cannot be parsed selects nothing.
func selectors(rule *rbacv1.AggregationRule) []labels.Selector {
	selectors := make([]labels.Selector, 0, len(rule.ClusterRoleSelectors))
	for i := range rule.ClusterRoleSelectors {
		selector, err := metav1.LabelSelectorAsSelector(&rule.ClusterRoleSelectors[i])
		if err != nil {
			selector = labels.Nothing()
		}
		selectors = append(selectors, selector)
	}
	return selectors
}
