// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package v1

import "github.com/borough-io/borough/pkg/apis/rbac/defaults"

// SetDefaults_RoleBindingTemplate sets the groups, as in a RoleBinding.
func SetDefaults_RoleBindingTemplate(obj *RoleBindingTemplate) {
	defaults.SetBinding(&obj.RoleRef, obj.Subjects)
}
