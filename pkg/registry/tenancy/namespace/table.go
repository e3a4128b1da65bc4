// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package namespace

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/borough-io/borough/pkg/apis/coregroup"
	"github.com/borough-io/borough/pkg/apis/tenancy"
	"github.com/borough-io/borough/pkg/registry/table"
)

// NewTableConvertor prints Namespaces as kubectl prints those of core/v1, and, unless
// the request is for the core group, after that what a Terminating one waits for.
func NewTableConvertor() rest.TableConvertor {
	columns := []metav1.TableColumnDefinition{
		table.NameColumn(),
		{Name: "Status", Type: "string", Description: "The status of the namespace"},
		table.AgeColumn(),
	}
	row := func(ns *tenancy.Namespace) []any {
		return []any{ns.Name, string(ns.Status.Phase), table.Age(ns.CreationTimestamp)}
	}
	more := []metav1.TableColumnDefinition{
		{Name: "Waiting For", Type: "string", Description: "What a terminating namespace waits for: content that is left, finalizers of the namespace, and API groups that cannot be discovered."},
		{Name: "Protected", Type: "boolean", Priority: 1, Description: "Whether the namespace is protected from deletion."},
		{Name: "Last Progress", Type: "string", Priority: 1, Description: "How long ago something last moved in the termination of the namespace."},
		{Name: "Details", Type: "string", Priority: 1, Description: "Names, finalizers and errors of what a terminating namespace waits for."},
	}
	return byGroup{
		core: table.NewConvertor(columns, func(ns *tenancy.Namespace) ([]any, []metav1.TableRowCondition) {
			return row(ns), nil
		}),
		own: table.NewConvertor(append(columns, more...), func(ns *tenancy.Namespace) ([]any, []metav1.TableRowCondition) {
			return append(row(ns), waitingFor(ns), ns.Spec.DeletionProtection, lastProgress(ns), details(ns)), nil
		}),
	}
}

// byGroup converts by the group of the request.
type byGroup struct{ core, own rest.TableConvertor }

// ConvertToTable implements rest.TableConvertor.
func (b byGroup) ConvertToTable(ctx context.Context, object, tableOptions runtime.Object) (*metav1.Table, error) {
	if coregroup.Requested(ctx) {
		return b.core.ConvertToTable(ctx, object, tableOptions)
	}
	return b.own.ConvertToTable(ctx, object, tableOptions)
}
