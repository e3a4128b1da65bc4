// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package visibility

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	apiuser "k8s.io/apiserver/pkg/authentication/user"
	rbacclient "k8s.io/client-go/kubernetes/typed/rbac/v1"

	"github.com/borough-io/borough/pkg/apis/tenancy"
	v1 "github.com/borough-io/borough/pkg/apis/tenancy/v1"
	tenancyv1 "github.com/borough-io/borough/pkg/generated/clientset/versioned/typed/tenancy/v1"
)

// The objects that are created, changed and deleted. Some names of Namespaces are
// prefixes of others.
var (
	namespaceNames   = []string{"a", "aa", "a-a", "b", "bb", "c", "d", "e", "f", "g", "h", "i"}
	roleNames        = []string{"r-0", "r-1"}
	clusterRoleNames = []string{"c-0", "c-1", "c-2", "c-3"}
	aggregateNames   = []string{"agg-0", "agg-1"}
	allClusterRoles  = slices.Concat(clusterRoleNames, aggregateNames)
	boundRoles       = append([]string{"view", "missing"}, allClusterRoles...)
	tiers            = []string{"gold", "silver"}
)

// writer sends random writes to one server.
type writer struct {
	namespaces tenancyv1.NamespaceInterface
	rights     rbacclient.RbacV1Interface
	users      []identity
	random     *rand.Rand
}

// operation is a kind of write.
type operation struct {
	name   string
	weight int // how often it is chosen
	// send returns the object in the response, unless there is none.
	send func(*writer, context.Context) (metav1.Object, error)
}

var operations = []operation{
	{"create a Namespace", 12, func(w *writer, ctx context.Context) (metav1.Object, error) {
		ns := &v1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: w.one(namespaceNames), Labels: map[string]string{"tier": w.one(tiers)}}}
		return acknowledged(w.namespaces.Create(ctx, ns, metav1.CreateOptions{}))
	}},
	{"delete a Namespace", 4, func(w *writer, ctx context.Context) (metav1.Object, error) {
		return nil, w.namespaces.Delete(ctx, w.one(namespaceNames), metav1.DeleteOptions{})
	}},
	{"relabel a Namespace", 10, func(w *writer, ctx context.Context) (metav1.Object, error) {
		patch := fmt.Appendf(nil, `{"metadata": {"labels": {"tier": %q}, "annotations": {"example.com/write": "%d"}}}`, w.one(tiers), w.random.Uint32())
		return acknowledged(w.namespaces.Patch(ctx, w.one(namespaceNames), types.MergePatchType, patch, metav1.PatchOptions{}))
	}},
	{"write a Role", 8, func(w *writer, ctx context.Context) (metav1.Object, error) {
		role := &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Name: w.one(roleNames)}, Rules: w.rules(3)}
		return put(ctx, w.rights.Roles(w.one(namespaceNames)), role)
	}},
	{"delete a Role", 4, func(w *writer, ctx context.Context) (metav1.Object, error) {
		return nil, w.rights.Roles(w.one(namespaceNames)).Delete(ctx, w.one(roleNames), metav1.DeleteOptions{})
	}},
	{"write a RoleBinding", 20, func(w *writer, ctx context.Context) (metav1.Object, error) {
		meta, ref := w.binding("Role", roleNames)
		if w.random.IntN(2) > 0 {
			meta, ref = w.binding("ClusterRole", boundRoles)
		}
		binding := &rbacv1.RoleBinding{ObjectMeta: meta, RoleRef: ref, Subjects: w.subjects()}
		return put(ctx, w.rights.RoleBindings(w.one(namespaceNames)), binding)
	}},
	{"delete a RoleBinding", 10, func(w *writer, ctx context.Context) (metav1.Object, error) {
		meta, _ := w.binding("Role", roleNames)
		if w.random.IntN(2) > 0 {
			meta, _ = w.binding("ClusterRole", boundRoles)
		}
		return nil, w.rights.RoleBindings(w.one(namespaceNames)).Delete(ctx, meta.Name, metav1.DeleteOptions{})
	}},
	{"delete all RoleBindings", 2, func(w *writer, ctx context.Context) (metav1.Object, error) {
		return nil, w.rights.RoleBindings(w.one(namespaceNames)).DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{})
	}},
	{"write a ClusterRole", 8, func(w *writer, ctx context.Context) (metav1.Object, error) {
		role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: w.one(clusterRoleNames), Labels: w.aggregates()}, Rules: w.rules(12)}
		return put(ctx, w.rights.ClusterRoles(), role)
	}},
	{"relabel a ClusterRole", 5, func(w *writer, ctx context.Context) (metav1.Object, error) {
		// Those that aggregate, too, so that they aggregate each other.
		patch := fmt.Appendf(nil, `{"metadata": {"labels": {"agg-0": "%t", "agg-1": "%t"}}}`, w.random.IntN(2) > 0, w.random.IntN(2) > 0)
		return acknowledged(w.rights.ClusterRoles().Patch(ctx, w.one(allClusterRoles), types.MergePatchType, patch, metav1.PatchOptions{}))
	}},
	{"delete a ClusterRole", 3, func(w *writer, ctx context.Context) (metav1.Object, error) {
		return nil, w.rights.ClusterRoles().Delete(ctx, w.one(allClusterRoles), metav1.DeleteOptions{})
	}},
	{"write an aggregating ClusterRole", 4, func(w *writer, ctx context.Context) (metav1.Object, error) {
		name := w.one(aggregateNames)
		role := &rbacv1.ClusterRole{
			ObjectMeta:      metav1.ObjectMeta{Name: name, Labels: w.aggregates()},
			AggregationRule: &rbacv1.AggregationRule{ClusterRoleSelectors: []metav1.LabelSelector{{MatchLabels: map[string]string{name: "true"}}}},
		}
		return put(ctx, w.rights.ClusterRoles(), role)
	}},
	{"write a ClusterRoleBinding", 6, func(w *writer, ctx context.Context) (metav1.Object, error) {
		meta, ref := w.binding("ClusterRole", boundRoles)
		return put(ctx, w.rights.ClusterRoleBindings(), &rbacv1.ClusterRoleBinding{ObjectMeta: meta, RoleRef: ref, Subjects: w.subjects()})
	}},
	{"delete a ClusterRoleBinding", 6, func(w *writer, ctx context.Context) (metav1.Object, error) {
		meta, _ := w.binding("ClusterRole", boundRoles)
		return nil, w.rights.ClusterRoleBindings().Delete(ctx, meta.Name, metav1.DeleteOptions{})
	}},
}

// choose chooses an operation.
func (w *writer) choose() operation {
	total := 0
	for _, o := range operations {
		total += o.weight
	}
	n := w.random.IntN(total)
	for _, o := range operations {
		if n -= o.weight; n < 0 {
			return o
		}
	}
	panic("unreachable")
}

func (w *writer) one(of []string) string { return of[w.random.IntN(len(of))] }

// binding returns the metadata and the role of a binding. The role of a binding cannot
// be changed, so it follows from the name.
func (w *writer) binding(kind string, roles []string) (metav1.ObjectMeta, rbacv1.RoleRef) {
	role := w.one(roles)
	ref := rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: kind, Name: role}
	return metav1.ObjectMeta{Name: fmt.Sprintf("to-%s-%d", role, w.random.IntN(2))}, ref
}

// subjects returns up to four subjects.
func (w *writer) subjects() []rbacv1.Subject {
	var subjects []rbacv1.Subject
	for range w.random.IntN(5) {
		who := w.users[w.random.IntN(len(w.users))]
		subject := rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: who.name}
		switch n := w.random.IntN(20); {
		case n == 0:
			subject.Kind, subject.Name = rbacv1.GroupKind, apiuser.AllAuthenticated
		case n < 6:
			subject.Kind, subject.Name = rbacv1.GroupKind, who.groups[w.random.IntN(len(who.groups)-1)] // but not the last, system:authenticated
		case n < 9:
			subject = rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: w.one(namespaceNames), Name: "robot"}
		}
		subjects = append(subjects, subject)
	}
	return subjects
}

// aggregates returns the labels by which ClusterRoles are aggregated.
func (w *writer) aggregates() map[string]string {
	set := map[string]string{}
	for _, name := range aggregateNames {
		set[name] = fmt.Sprint(w.random.IntN(2) > 0)
	}
	return set
}

// rules returns up to three rules. One in the number of rare shows Namespaces without
// naming them.
func (w *writer) rules(rare int) []rbacv1.PolicyRule {
	var rules []rbacv1.PolicyRule
	for range w.random.IntN(4) {
		group := []string{tenancy.GroupName, corev1.GroupName}[w.random.IntN(2)]
		rule := rbacv1.PolicyRule{APIGroups: []string{group}, Resources: []string{"namespaces"}, Verbs: []string{"get", "list"}}
		if w.random.IntN(rare) == 0 {
			switch w.random.IntN(4) {
			case 0:
				rule.Verbs = []string{"get", "list", "watch"}
			case 1:
				rule.Verbs = []string{"watch"}
			case 2:
				rule.APIGroups, rule.Resources, rule.Verbs = []string{"*"}, []string{"*"}, []string{"*"}
			}
			rules = append(rules, rule)
			continue
		}
		switch w.random.IntN(10) { // what shows nothing, or only what it names
		case 0:
			rule.Resources = []string{"pods", "namespaces/status", "*/finalize"}
		case 1:
			rule.APIGroups = []string{"example.com"}
		case 2:
			rule.Verbs = []string{"delete", "update"}
		case 3:
			rule.Verbs, rule.ResourceNames = []string{"list", "watch"}, []string{w.one(namespaceNames)}
		default:
			for range 1 + w.random.IntN(3) {
				rule.ResourceNames = append(rule.ResourceNames, w.one(namespaceNames))
			}
		}
		rules = append(rules, rule)
	}
	return rules
}

// put creates an object, or updates it if it exists.
func put[T metav1.Object](ctx context.Context, client interface {
	Create(context.Context, T, metav1.CreateOptions) (T, error)
	Update(context.Context, T, metav1.UpdateOptions) (T, error)
}, obj T) (metav1.Object, error) {
	created, err := client.Create(ctx, obj, metav1.CreateOptions{})
	if !apierrors.IsAlreadyExists(err) {
		return acknowledged(created, err)
	}
	return acknowledged(client.Update(ctx, obj, metav1.UpdateOptions{}))
}

func acknowledged[T metav1.Object](obj T, err error) (metav1.Object, error) {
	if err != nil {
		return nil, err
	}
	return obj, nil
}

// isRefused reports whether a write failed because of the state of what it writes.
func isRefused(err error) bool {
	return apierrors.IsNotFound(err) || apierrors.IsAlreadyExists(err) || apierrors.IsConflict(err) ||
		apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause)
}
