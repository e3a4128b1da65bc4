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

// NewTableConvertor prints Namespaces as kubectl prints those of core/v1, and after that
// what a Terminating one waits for. In the core group, kubectl shows that with -o wide.
func NewTableConvertor() rest.TableConvertor {
	convertor := func(waitingForPriority int32) rest.TableConvertor {
		return table.NewConvertor(
			[]metav1.TableColumnDefinition{
				table.NameColumn(),
				{Name: "Status", Type: "string", Description: "The status of the namespace"},
				table.AgeColumn(),
				{Name: "Waiting For", Type: "string", Priority: waitingForPriority, Description: "What a terminating namespace waits for: content that is left, finalizers of the namespace, and API groups that cannot be discovered."},
				{Name: "Protected", Type: "boolean", Priority: 1, Description: "Whether the namespace is protected from deletion."},
				{Name: "Last Progress", Type: "string", Priority: 1, Description: "Time since the last progress of the termination of the namespace."},
				{Name: "Details", Type: "string", Priority: 1, Description: "Names, finalizers and errors of what a terminating namespace waits for."},
			},
			func(ns *tenancy.Namespace) ([]any, []metav1.TableRowCondition) {
				return []any{
					ns.Name, string(ns.Status.Phase), table.Age(ns.CreationTimestamp),
					waitingFor(ns), ns.Spec.DeletionProtection, lastProgress(ns), details(ns),
				}, nil
			})
	}
	return byGroup{core: convertor(1), own: convertor(0)}
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
