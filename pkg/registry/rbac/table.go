// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package rbac

import (
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/borough-io/borough/pkg/registry/table"
)

// newBindingTable returns the columns of Kubernetes for bindings of a kind, with its
// description of the role.
func newBindingTable[T interface {
	runtime.Object
	metav1.Object
}](kind, role string, parts func(T) (rbacv1.RoleRef, []rbacv1.Subject)) rest.TableConvertor {
	columns := []metav1.TableColumnDefinition{
		table.NameColumn(),
		{Name: "Role", Type: "string", Description: role},
		table.AgeColumn(),
		{Name: "Users", Type: "string", Priority: 1, Description: "Users in the " + kind},
		{Name: "Groups", Type: "string", Priority: 1, Description: "Groups in the " + kind},
		{Name: "ServiceAccounts", Type: "string", Priority: 1, Description: "ServiceAccounts in the " + kind},
	}
	return table.NewConvertor(columns, func(obj T) ([]any, []metav1.TableRowCondition) {
		ref, subjects := parts(obj)
		var users, groups, accounts []string
		for _, s := range subjects {
			switch s.Kind {
			case rbacv1.UserKind:
				users = append(users, s.Name)
			case rbacv1.GroupKind:
				groups = append(groups, s.Name)
			case rbacv1.ServiceAccountKind:
				accounts = append(accounts, s.Namespace+"/"+s.Name)
			}
		}
		return []any{
			obj.GetName(), ref.Kind + "/" + ref.Name, table.Age(obj.GetCreationTimestamp()),
			strings.Join(users, ", "), strings.Join(groups, ", "), strings.Join(accounts, ", "),
		}, nil
	})
}
