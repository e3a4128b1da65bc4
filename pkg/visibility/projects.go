// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package visibility

import (
	"context"
	"errors"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metainternalversion "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/storage"

	"github.com/borough-io/borough/pkg/apis/tenancy"
	"github.com/borough-io/borough/pkg/authorization/rbac"
	"github.com/borough-io/borough/pkg/authorization/revocation"
)

// Projects is what one user sees, as Projects: the Namespaces with the user's access.
type Projects struct{ view View }

// Projects returns the Projects of the user of a request. Members of the privileged
// group have all of them.
func (v *Views) Projects(ctx context.Context) (*Projects, error) {
	u, ok := request.UserFrom(ctx)
	if !ok {
		return nil, apierrors.NewInternalError(errors.New("read projects: the request has no user"))
	}
	if err := v.index.RequireSync(ctx); err != nil {
		return nil, err
	}
	view := View{views: v, asProjects: true}
	if revocation.IsPrivileged(u) {
		view.all = true
	} else {
		view.subjects = rbac.Subjects(u)
	}
	return &Projects{view}, nil
}

var accessNames = map[rbac.Access]tenancy.ProjectAccess{
	rbac.AccessCustom: tenancy.ProjectCustom,
	rbac.AccessView:   tenancy.ProjectView,
	rbac.AccessEdit:   tenancy.ProjectEdit,
	rbac.AccessAdmin:  tenancy.ProjectAdmin,
}

// newProject returns the Project that shows a Namespace, with which it shares memory.
func newProject(n *tenancy.Namespace, access rbac.Access) *tenancy.Project {
	project := &tenancy.Project{
		ObjectMeta: n.ObjectMeta,
		Spec:       tenancy.ProjectSpec{Finalizers: n.Spec.Finalizers},
		Status:     tenancy.ProjectStatus{Phase: n.Status.Phase, Access: accessNames[access]},
	}
	project.ManagedFields = nil // they name fields of the Namespace
	return project
}

// Get returns a Project. The error is the same if the Namespace does not exist and if
// the user may not get it.
func (p *Projects) Get(ctx context.Context, name string, options *metav1.GetOptions) (*tenancy.Project, error) {
	v := p.view.views
	if _, err := v.awaitResourceVersion(ctx, options.ResourceVersion); err != nil {
		return nil, err
	}
	for {
		v.mu.RLock()
		position := v.reached
		v.mu.RUnlock()
		rights := p.view.rights(position)
		seen := p.view.visible(name, position, &rights)
		if v.lost(position) {
			continue // the history has been replaced since
		}
		if seen.version != nil {
			if n := seen.version.decode(name); n != nil {
				return newProject(n, seen.access), nil
			}
		}
		return nil, apierrors.NewNotFound(tenancy.Resource("projects"), name)
	}
}

// List returns the Projects at the revision that the options choose whose Namespaces
// the predicate selects. The errors are those of View.List.
func (p *Projects) List(ctx context.Context, options *metainternalversion.ListOptions, predicate storage.SelectionPredicate) (*tenancy.ProjectList, error) {
	list := &tenancy.ProjectList{Items: []tenancy.Project{}}
	metadata, err := p.view.list(ctx, options, predicate, func(n *tenancy.Namespace, access rbac.Access) {
		list.Items = append(list.Items, *newProject(n, access))
	})
	if err != nil {
		return nil, err
	}
	list.ListMeta = metadata
	return list, nil
}

// Watch watches the Projects whose Namespaces the predicate selects, as View.Watch
// does. When the user's access changes, the Project is MODIFIED with the resourceVersion
// of the Namespace, which a bookmark follows.
func (p *Projects) Watch(ctx context.Context, options *metainternalversion.ListOptions, predicate storage.SelectionPredicate) (watch.Interface, error) {
	return p.view.Watch(ctx, options, predicate)
}
