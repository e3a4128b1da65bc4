// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package namespace

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/borough-io/borough/pkg/apis/tenancy"
	"github.com/borough-io/borough/pkg/registry/table"
)

// NewTableConvertor prints Namespaces as kubectl prints those of core/v1, and
// after that what a Terminating one waits for.
func NewTableConvertor() rest.TableConvertor {
	return table.NewConvertor(
		[]metav1.TableColumnDefinition{
			table.NameColumn(),
			{Name: "Status", Type: "string", Description: "The status of the namespace"},
			table.AgeColumn(),
			{Name: "Waiting For", Type: "string", Description: "What a terminating namespace waits for: content that is left, finalizers of the namespace, and API groups that cannot be discovered."},
			{Name: "Protected", Type: "boolean", Priority: 1, Description: "Whether the namespace is protected from deletion."},
			{Name: "Last Progress", Type: "string", Priority: 1, Description: "How long ago something last moved in the termination of the namespace."},
			{Name: "Details", Type: "string", Priority: 1, Description: "Names, finalizers and errors of what a terminating namespace waits for."},
		},
		func(ns *tenancy.Namespace) ([]any, []metav1.TableRowCondition) {
			return []any{
				ns.Name, string(ns.Status.Phase), table.Age(ns.CreationTimestamp),
				waitingFor(ns), ns.Spec.DeletionProtection, lastProgress(ns), details(ns),
			}, nil
		})
}
