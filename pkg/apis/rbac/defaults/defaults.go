// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

// Package defaults has the defaults of pkg/apis/rbac/v1 in Kubernetes.
package defaults

import rbacv1 "k8s.io/api/rbac/v1"

// SetBinding sets the group of a role reference, and that of users and groups as
// subjects.
func SetBinding(ref *rbacv1.RoleRef, subjects []rbacv1.Subject) {
	if ref.APIGroup == "" {
		ref.APIGroup = rbacv1.GroupName
	}
	for i := range subjects {
		s := &subjects[i]
		if s.APIGroup == "" && (s.Kind == rbacv1.UserKind || s.Kind == rbacv1.GroupKind) {
			s.APIGroup = rbacv1.GroupName
		}
	}
}
