// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package kubernetes

import (
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/borough-io/borough/pkg/apis/tenancy"
)

// NamespacedKinds returns the namespaced kinds of the groups. What is true of
// tenancy.NamespacedKinds is true of them on a standalone server.
func NamespacedKinds() []tenancy.NamespacedKind {
	return []tenancy.NamespacedKind{
		{Group: corev1.GroupName, Kind: "Event", Resource: "events", PurgeStage: tenancy.PurgeContent},
		{Group: coordinationv1.GroupName, Kind: "Lease", Resource: "leases", PurgeStage: tenancy.PurgeContent},
		{Group: rbacv1.GroupName, Kind: "RoleBinding", Resource: "rolebindings", PurgeStage: tenancy.PurgeRights},
		{Group: rbacv1.GroupName, Kind: "Role", Resource: "roles", PurgeStage: tenancy.PurgeRights},
	}
}
