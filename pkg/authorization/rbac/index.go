// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package rbac

import (
	"cmp"
	"slices"
	"strings"
	"sync"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/authentication/serviceaccount"
)

// Index is the policy, arranged so that a decision reads only the bindings of the
// user and the groups of a request. It keeps no more of each object than decisions
// need. It is safe for concurrent use.
type Index struct {
	mu sync.RWMutex
	// roles has the Roles and, without a namespace, the ClusterRoles.
	roles map[objectKey]*role
	// bindings has the RoleBindings and, without a namespace, the
	// ClusterRoleBindings.
	bindings map[objectKey]*binding
	// bySubject has the same bindings, in order of their names.
	bySubject map[subjectKey][]*binding
	// aggregating are the ClusterRoles with an aggregation rule.
	aggregating map[objectKey]*role
	// revisions are those that each resource has reached.
	revisions [resources]revision
	// changed is closed when the policy changes.
	changed chan struct{}
}

// resource is one of the four kinds of objects.
type resource int

const (
	roles resource = iota
	roleBindings
	clusterRoles
	clusterRoleBindings
	resources // their number
)

type objectKey struct{ namespace, name string }

// subjectKey is a subject of the bindings in a namespace, or without a namespace of
// the ClusterRoleBindings. A service account is the user as which it is authenticated.
type subjectKey struct {
	namespace string
	group     bool
	name      string
}

type role struct {
	rules  []rbacv1.PolicyRule
	labels labels.Set

	// Only of a ClusterRole that aggregates others, whose rules are those that it
	// aggregates:
	selectors []labels.Selector
	uid       types.UID
	stored    []rbacv1.PolicyRule
}

type binding struct {
	objectKey
	ref      rbacv1.RoleRef
	subjects []rbacv1.Subject
}

// NewIndex returns an index without any policy, which has not synced.
func NewIndex() *Index {
	x := &Index{
		roles:       map[objectKey]*role{},
		bindings:    map[objectKey]*binding{},
		bySubject:   map[subjectKey][]*binding{},
		aggregating: map[objectKey]*role{},
		changed:     make(chan struct{}),
	}
	for i := range x.revisions {
		x.revisions[i].reached = make(chan struct{})
	}
	return x
}

// Changed returns a channel that is closed when the policy changes.
func (x *Index) Changed() <-chan struct{} {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return x.changed
}

// notify closes the channels of Changed. The lock is held.
func (x *Index) notify() {
	close(x.changed)
	x.changed = make(chan struct{})
}

func (x *Index) setRole(key objectKey, r *role) {
	if old := x.roles[key]; old != nil && old.selectors != nil {
		delete(x.aggregating, key)
	}
	if r == nil {
		delete(x.roles, key)
	} else {
		x.roles[key] = r
		if r.selectors != nil {
			x.aggregating[key] = r
		}
	}
}

func (x *Index) setBinding(key objectKey, b *binding) {
	if old := x.bindings[key]; old != nil {
		delete(x.bindings, key)
		for _, subject := range old.subjectKeys() {
			if rest := without(x.bySubject[subject], old); len(rest) > 0 {
				x.bySubject[subject] = rest
			} else {
				delete(x.bySubject, subject)
			}
		}
	}
	if b != nil {
		x.bindings[key] = b
		for _, subject := range b.subjectKeys() {
			list := x.bySubject[subject]
			i, _ := slices.BinarySearchFunc(list, b, compareNames)
			x.bySubject[subject] = slices.Insert(list, i, b)
		}
	}
}

func without(list []*binding, b *binding) []*binding {
	return slices.DeleteFunc(list, func(other *binding) bool { return other == b })
}

func compareNames(a, b *binding) int { return strings.Compare(a.name, b.name) }

// subjectKeys returns the keys of the subjects, each once.
func (b *binding) subjectKeys() []subjectKey {
	keys := make([]subjectKey, 0, len(b.subjects))
	seen := make(map[subjectKey]struct{}, len(b.subjects))
	for i := range b.subjects {
		key, ok := b.subjectKey(&b.subjects[i])
		if _, twice := seen[key]; ok && !twice {
			seen[key] = struct{}{}
			keys = append(keys, key)
		}
	}
	return keys
}

// subjectKey returns the key of a subject, and false if no user can be the subject.
func (b *binding) subjectKey(subject *rbacv1.Subject) (subjectKey, bool) {
	key := subjectKey{namespace: b.namespace, name: subject.Name}
	switch subject.Kind {
	case rbacv1.UserKind:
	case rbacv1.GroupKind:
		key.group = true
	case rbacv1.ServiceAccountKind:
		namespace := cmp.Or(subject.Namespace, b.namespace)
		if namespace == "" {
			return subjectKey{}, false
		}
		key.name = serviceaccount.MakeUsername(namespace, subject.Name)
	default:
		return subjectKey{}, false
	}
	return key, true
}
