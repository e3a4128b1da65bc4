// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package namespacerequest

import (
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authentication/serviceaccount"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/borough-io/borough/pkg/apis/tenancy/validation"
)

const adminRole = "admin"

// newRoleBinding returns the RoleBinding that makes the user the admin of a Namespace.
func newRoleBinding(namespace string, requester user.Info) *rbacv1.RoleBinding {
	subject := rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: requester.GetName()}
	if in, name, err := serviceaccount.SplitUsername(requester.GetName()); err == nil {
		subject = rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: in, Name: name}
	}
	return &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: validation.RequestedRoleBinding, Namespace: namespace},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: adminRole},
		Subjects:   []rbacv1.Subject{subject},
	}
}
