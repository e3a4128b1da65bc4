// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

// Package bootstrap is the policy that a standalone server has from the start: the
// ClusterRoles of Kubernetes, for the kinds that are served here.
package bootstrap

import (
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	eventsv1 "k8s.io/api/events/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/borough-io/borough/pkg/apis/tenancy"
)

// ControllerUser is the user name of the namespace controller.
const ControllerUser = "system:borough-controller-manager"

var (
	read  = []string{"get", "list", "watch"}
	write = []string{"create", "delete", "deletecollection", "patch", "update"}
)

// ViewRules are the rights of tenants to read, in a Namespace that they have them in.
// In a cluster they are the ClusterRole borough-view.
func ViewRules() []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{
		{APIGroups: []string{tenancy.GroupName}, Resources: []string{"limitranges", "namespaces", "pods", "resourcequotas"}, Verbs: read},
		{APIGroups: []string{tenancy.GroupName}, Resources: []string{"namespaces/status", "pods/status"}, Verbs: []string{"get"}},
	}
}

// EditRules are the rights of tenants to write. In a cluster they are the ClusterRole
// borough-edit.
func EditRules() []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{
		{APIGroups: []string{tenancy.GroupName}, Resources: []string{"pods"}, Verbs: write},
	}
}

// AdminRules are the rights of the admin of a Namespace to grant rights in it. In a
// cluster the cluster's role admin has them.
func AdminRules() []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{
		{APIGroups: []string{authorizationv1.GroupName}, Resources: []string{"localsubjectaccessreviews"}, Verbs: []string{"create"}},
		{APIGroups: []string{rbacv1.GroupName}, Resources: []string{"roles", "rolebindings"}, Verbs: append(read, write...)},
	}
}

// projectViewer is the name of the ClusterRole with ProjectRules.
const projectViewer = "system:project-viewer"

// ProjectRules are the rights to read projects. All users have them, and see their own.
func ProjectRules() []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{
		{APIGroups: []string{tenancy.GroupName}, Resources: []string{"projects"}, Verbs: read},
	}
}

// sourceRole is the name of the ClusterRole with SourceRules.
const sourceRole = "borough-source"

// SourceRules are the rights of borough-source in the Namespace of a source.
func SourceRules() []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{
		{APIGroups: []string{tenancy.GroupName}, Resources: []string{"namespaces"}, Verbs: []string{"get", "list", "watch", "patch", "delete"}},
		{APIGroups: []string{tenancy.GroupName}, Resources: []string{"pods"}, Verbs: []string{"get", "list", "watch", "create", "patch", "delete"}},
		{APIGroups: []string{tenancy.GroupName}, Resources: []string{"limitranges", "resourcequotas"}, Verbs: read},
		{APIGroups: []string{eventsv1.GroupName}, Resources: []string{"events"}, Verbs: []string{"create"}},
		{APIGroups: []string{coordinationv1.GroupName}, Resources: []string{"leases"}, Verbs: []string{"get", "create", "update"}},
	}
}

// ControllerRules returns the rights of the namespace controller: it discovers the
// kinds, watches the Namespaces, purges their content, and finalizes them. It does
// not have the verb force on namespacepurges.
func ControllerRules() []rbacv1.PolicyRule {
	var content []string
	for _, kind := range tenancy.NamespacedKinds() {
		content = append(content, kind.Resource)
	}
	return []rbacv1.PolicyRule{
		{NonResourceURLs: []string{"/api", "/api/*", "/apis", "/apis/*", "/version"}, Verbs: []string{"get"}},
		{APIGroups: []string{tenancy.GroupName}, Resources: []string{"namespaces"}, Verbs: []string{"get", "list", "watch", "delete"}},
		{APIGroups: []string{tenancy.GroupName}, Resources: []string{"namespaces/status", "namespaces/finalize"}, Verbs: []string{"update"}},
		{APIGroups: []string{tenancy.GroupName}, Resources: []string{"namespacepurges"}, Verbs: []string{"create"}},
		{APIGroups: []string{tenancy.GroupName}, Resources: content, Verbs: []string{"list", "watch", "delete"}},
	}
}

// standaloneControllerRules are the rights that the controller needs in addition where
// rights are content of Namespaces. A purge deletes them; the controller only reports
// those that remain.
func standaloneControllerRules() []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{
		{APIGroups: []string{rbacv1.GroupName}, Resources: []string{"roles", "rolebindings"}, Verbs: []string{"list", "watch"}},
		// The controller discovers those of events.k8s.io with --purge-api-groups=*.
		{APIGroups: []string{"", eventsv1.GroupName}, Resources: []string{"events"}, Verbs: []string{"list", "watch"}},
		{APIGroups: []string{coordinationv1.GroupName}, Resources: []string{"leases"}, Verbs: []string{"list", "watch"}},
	}
}

// ClusterRoles returns the ClusterRoles.
func ClusterRoles() []rbacv1.ClusterRole {
	health := []string{"/livez", "/readyz", "/healthz"}
	version := []string{"/version", "/version/"}
	discovery := []string{"/openapi", "/openapi/*", "/api", "/api/*", "/apis", "/apis/*"}
	get := func(paths ...[]string) []rbacv1.PolicyRule {
		rule := rbacv1.PolicyRule{Verbs: []string{"get"}}
		for _, p := range paths {
			rule.NonResourceURLs = append(rule.NonResourceURLs, p...)
		}
		return []rbacv1.PolicyRule{rule}
	}
	return []rbacv1.ClusterRole{
		newRole("cluster-admin", []rbacv1.PolicyRule{
			{Verbs: []string{"*"}, APIGroups: []string{"*"}, Resources: []string{"*"}},
			{Verbs: []string{"*"}, NonResourceURLs: []string{"*"}},
		}),
		newRole("system:discovery", append(get(health, version, discovery),
			rbacv1.PolicyRule{APIGroups: []string{"apiextensions.k8s.io"}, Resources: []string{"customresourcedefinitions"}, Verbs: []string{"list"}})),
		newRole("system:public-info-viewer", get(health, version)),
		newRole("system:monitoring", get([]string{"/metrics", "/metrics/slis", "/flagz", "/statusz"}, health, []string{"/livez/*", "/readyz/*", "/healthz/*"})),
		newRole("system:basic-user", []rbacv1.PolicyRule{
			{APIGroups: []string{authorizationv1.GroupName}, Resources: []string{"selfsubjectaccessreviews", "selfsubjectrulesreviews"}, Verbs: []string{"create"}},
			{APIGroups: []string{authenticationv1.GroupName}, Resources: []string{"selfsubjectreviews"}, Verbs: []string{"create"}},
		}),
		// No one has this role until an administrator binds it to a server that asks this
		// one who its users are and what they may do.
		newRole("system:auth-delegator", []rbacv1.PolicyRule{
			{APIGroups: []string{authenticationv1.GroupName}, Resources: []string{"tokenreviews"}, Verbs: []string{"create"}},
			{APIGroups: []string{authorizationv1.GroupName}, Resources: []string{"subjectaccessreviews"}, Verbs: []string{"create"}},
		}),
		newRole(projectViewer, ProjectRules()),
		// No one has this role until an administrator binds it.
		newRole("namespace-requester", []rbacv1.PolicyRule{
			{APIGroups: []string{tenancy.GroupName}, Resources: []string{"namespacerequests"}, Verbs: []string{"create"}},
		}),
		// No one has these roles either. In the Namespace of a source, borough-source binds
		// the first to itself.
		newRole(sourceRole, SourceRules()),
		newRole("borough-source-requester", []rbacv1.PolicyRule{
			{APIGroups: []string{tenancy.GroupName}, Resources: []string{"namespacerequests"}, Verbs: []string{"create"}},
			{APIGroups: []string{rbacv1.GroupName}, Resources: []string{"clusterroles"}, ResourceNames: []string{sourceRole}, Verbs: []string{"bind"}},
		}),
		newRole(ControllerUser, append(ControllerRules(), standaloneControllerRules()...)),

		newAggregate("admin", ""),
		newAggregate("edit", "admin"),
		newAggregate("view", "edit"),
		aggregatedTo("admin", newRole("system:aggregate-to-admin", AdminRules())),
		aggregatedTo("edit", newRole("system:aggregate-to-edit", append(EditRules(),
			rbacv1.PolicyRule{APIGroups: []string{"", eventsv1.GroupName}, Resources: []string{"events"}, Verbs: write},
			rbacv1.PolicyRule{APIGroups: []string{coordinationv1.GroupName}, Resources: []string{"leases"}, Verbs: append(read, write...)},
		))),
		aggregatedTo("view", newRole("system:aggregate-to-view", append(ViewRules(),
			rbacv1.PolicyRule{APIGroups: []string{"", eventsv1.GroupName}, Resources: []string{"events"}, Verbs: read},
		))),
	}
}

// clusterRoleBindings returns the ClusterRoleBindings. Each has the name of its role.
func clusterRoleBindings() []rbacv1.ClusterRoleBinding {
	group := func(name string) rbacv1.Subject {
		return rbacv1.Subject{Kind: rbacv1.GroupKind, APIGroup: rbacv1.GroupName, Name: name}
	}
	return []rbacv1.ClusterRoleBinding{
		newBinding("cluster-admin", group(user.SystemPrivilegedGroup)),
		newBinding("system:discovery", group(user.AllAuthenticated)),
		newBinding("system:basic-user", group(user.AllAuthenticated)),
		newBinding(projectViewer, group(user.AllAuthenticated)),
		newBinding("system:public-info-viewer", group(user.AllAuthenticated), group(user.AllUnauthenticated)),
		newBinding("system:monitoring", group(user.MonitoringGroup)),
		newBinding(ControllerUser, rbacv1.Subject{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: ControllerUser}),
	}
}

const aggregateLabel = "rbac.authorization.k8s.io/aggregate-to-"

func newMeta(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Name:        name,
		Labels:      map[string]string{"kubernetes.io/bootstrapping": "rbac-defaults"},
		Annotations: map[string]string{rbacv1.AutoUpdateAnnotationKey: "true"},
	}
}

func newRole(name string, rules []rbacv1.PolicyRule) rbacv1.ClusterRole {
	return rbacv1.ClusterRole{ObjectMeta: newMeta(name), Rules: rules}
}

func aggregatedTo(name string, role rbacv1.ClusterRole) rbacv1.ClusterRole {
	role.Labels[aggregateLabel+name] = "true"
	return role
}

// newAggregate returns the role that has the rules of those that are aggregated to it,
// and is aggregated to another one unless that is empty.
func newAggregate(name, to string) rbacv1.ClusterRole {
	role := newRole(name, nil)
	if to != "" {
		role = aggregatedTo(to, role)
	}
	role.AggregationRule = &rbacv1.AggregationRule{
		ClusterRoleSelectors: []metav1.LabelSelector{{MatchLabels: map[string]string{aggregateLabel + name: "true"}}},
	}
	return role
}

func newBinding(role string, subjects ...rbacv1.Subject) rbacv1.ClusterRoleBinding {
	return rbacv1.ClusterRoleBinding{
		ObjectMeta: newMeta(role),
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
		Subjects:   subjects,
	}
}
