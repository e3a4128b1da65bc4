// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package namespacetemplate

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/borough-io/borough/pkg/apis/tenancy"
	"github.com/borough-io/borough/pkg/registry/table"
)

// newTableConvertor prints NamespaceTemplates with the names of their content.
func newTableConvertor() rest.TableConvertor {
	return table.NewConvertor(
		[]metav1.TableColumnDefinition{
			table.NameColumn(),
			{Name: "Selector", Type: "string", Description: "The labels of the namespaces that the template is for. A template with <default> is for those that no other selects."},
			{Name: "LimitRange", Type: "string", Description: "The name of the LimitRange."},
			{Name: "ResourceQuota", Type: "string", Description: "The name of the ResourceQuota."},
			{Name: "RoleBinding", Type: "string", Description: "The name of the RoleBinding."},
			table.AgeColumn(),
		}, row)
}

func row(template *tenancy.NamespaceTemplate) ([]any, []metav1.TableRowCondition) {
	spec := &template.Spec
	selector := "<default>"
	switch s := spec.NamespaceSelector; {
	case s == nil:
	case len(s.MatchLabels) == 0 && len(s.MatchExpressions) == 0:
		selector = "<all>"
	default:
		selector = metav1.FormatLabelSelector(s)
	}
	limitRange, quota, binding := table.None, table.None, table.None
	if spec.LimitRange != nil {
		limitRange = spec.LimitRange.Metadata.Name
	}
	if spec.ResourceQuota != nil {
		quota = spec.ResourceQuota.Metadata.Name
	}
	if spec.RoleBinding != nil {
		binding = spec.RoleBinding.Metadata.Name
	}
	return []any{template.Name, selector, limitRange, quota, binding, table.Age(template.CreationTimestamp)}, nil
}
