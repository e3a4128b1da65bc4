// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

// Package project serves projects: to each user the Namespaces that the user may get.
package project

import (
	"context"

	metainternalversion "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/borough-io/borough/pkg/apis/tenancy"
	"github.com/borough-io/borough/pkg/authorization/revocation"
	"github.com/borough-io/borough/pkg/registry/table"
	"github.com/borough-io/borough/pkg/registry/tenancy/namespace"
	"github.com/borough-io/borough/pkg/visibility"
)

// REST serves projects. They are not stored.
type REST struct {
	rest.TableConvertor
	views  *visibility.Views
	policy revocation.Policy
}

var (
	_ rest.Getter               = &REST{}
	_ rest.Lister               = &REST{}
	_ rest.Watcher              = &REST{}
	_ rest.Scoper               = &REST{}
	_ rest.SingularNameProvider = &REST{}
)

// NewREST returns a REST that shows what the views have. It ends watches to which the
// policy, which may be nil, no longer gives a right.
func NewREST(views *visibility.Views, policy revocation.Policy) *REST {
	columns := []metav1.TableColumnDefinition{
		table.NameColumn(),
		{Name: "Status", Type: "string", Description: "The status of the namespace."},
		{Name: "Access", Type: "string", Description: "The access of the user to the namespace."},
		table.AgeColumn(),
	}
	return &REST{
		TableConvertor: table.NewConvertor(columns, func(p *tenancy.Project) ([]any, []metav1.TableRowCondition) {
			return []any{p.Name, string(p.Status.Phase), string(p.Status.Access), table.Age(p.CreationTimestamp)}, nil
		}),
		views:  views,
		policy: policy,
	}
}

// New returns an empty Project.
func (r *REST) New() runtime.Object { return &tenancy.Project{} }

// NewList returns an empty list of Projects.
func (r *REST) NewList() runtime.Object { return &tenancy.ProjectList{} }

// Destroy does nothing, since nothing is stored.
func (r *REST) Destroy() {}

// NamespaceScoped returns false.
func (r *REST) NamespaceScoped() bool { return false }

// GetSingularName returns the singular name of the resource.
func (r *REST) GetSingularName() string { return "project" }

// Get returns a Project. It returns NotFound if the user may not get the Namespace.
func (r *REST) Get(ctx context.Context, name string, options *metav1.GetOptions) (runtime.Object, error) {
	projects, err := r.views.Projects(ctx)
	if err != nil {
		return nil, err
	}
	return projects.Get(ctx, name, options)
}

// List returns the Projects that the options select.
func (r *REST) List(ctx context.Context, options *metainternalversion.ListOptions) (runtime.Object, error) {
	projects, err := r.views.Projects(ctx)
	if err != nil {
		return nil, err
	}
	return table.List(ctx, r, func() (runtime.Object, error) { return projects.List(ctx, options, namespace.Selected(options)) })
}

// Watch streams the changes of the Projects that the options select.
func (r *REST) Watch(ctx context.Context, options *metainternalversion.ListOptions) (watch.Interface, error) {
	projects, err := r.views.Projects(ctx)
	if err != nil {
		return nil, err
	}
	w, err := projects.Watch(ctx, options, namespace.Selected(options))
	if err != nil {
		return nil, err
	}
	if r.policy == nil {
		return w, nil
	}
	return revocation.Watch(ctx, w, r.policy), nil
}
