// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package namespace

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/borough-io/borough/pkg/apis/tenancy"
	"github.com/borough-io/borough/pkg/registry/table"
)

// NewTableConvertor prints Namespaces as kubectl prints those of core/v1.
func NewTableConvertor() rest.TableConvertor {
	return table.NewConvertor(
		[]metav1.TableColumnDefinition{
			table.NameColumn(),
			{Name: "Status", Type: "string", Description: "The status of the namespace"},
			table.AgeColumn(),
		},
		func(ns *tenancy.Namespace) ([]any, []metav1.TableRowCondition) {
			return []any{ns.Name, string(ns.Status.Phase), table.Age(ns.CreationTimestamp)}, nil
		})
}
