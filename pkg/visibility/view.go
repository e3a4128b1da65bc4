// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package visibility

import (
	"context"
	"slices"

	metainternalversion "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/endpoints/filters"
	"k8s.io/apiserver/pkg/storage"

	"github.com/borough-io/borough/pkg/apis/coregroup"
	"github.com/borough-io/borough/pkg/apis/tenancy"
	"github.com/borough-io/borough/pkg/authorization/rbac"
	"github.com/borough-io/borough/pkg/authorization/revocation"
)

// View is what one user sees.
type View struct {
	views    *Views
	subjects []rbac.Subject
	// all is true if the user has all rights, regardless of the policy.
	all bool
	// asProjects is true if the view shows Namespaces as Projects, with the access.
	asProjects bool
}

// Of returns the view of a user.
func (v *Views) Of(u user.Info) *View { return &View{views: v, subjects: rbac.Subjects(u)} }

// Everything returns the view of a user who always sees all Namespaces.
func (v *Views) Everything() *View { return &View{views: v, all: true} }

// ListsPages reports whether a view serves a list also for a user with the right to list
// all: a page takes a view the time of what is in it, and the library that of all that
// follows it.
func ListsPages(options *metainternalversion.ListOptions, predicate storage.SelectionPredicate) bool {
	return isOfView(options.Continue) || options.Limit > 0 && predicate.Empty() && options.ResourceVersion != "0"
}

// Request is a request to list or watch Namespaces of a user who may not see all of
// them always.
type Request struct {
	*View
	attributes authorizer.Attributes
	options    *metainternalversion.ListOptions
}

// For returns the request with a context and options, or nil if its user always sees all
// Namespaces.
func (v *Views) For(ctx context.Context, options *metainternalversion.ListOptions) (*Request, error) {
	// The handlers behind authorization may have changed the request.
	attributes, ok := revocation.Attributes(ctx)
	if !ok {
		var err error
		if attributes, err = filters.GetAuthorizerAttributes(ctx); err != nil {
			return nil, nil // not a request of a user
		}
	}
	if attributes.GetUser() == nil || revocation.IsPrivileged(attributes.GetUser()) {
		return nil, nil
	}
	if err := v.index.RequireSync(ctx); err != nil {
		return nil, err
	}
	return &Request{v.Of(attributes.GetUser()), attributes, options}, nil
}

// ByRight reports whether the user has the right to list all, so that the request can be
// served without the view, unless a view has begun the list. What the request lists must then be
// at a revision at which the user had the right, see HeldAt.
//
// A watch is always one of the view: the right may come or go between two events, or between a
// list and the watch that continues it, and the client would keep what it does not see any more,
// or miss something.
func (q *Request) ByRight(ctx context.Context) (bool, error) {
	// Not by the options: a path such as /watch/namespaces leaves them as they are.
	if q.attributes.GetVerb() == "watch" || isOfView(q.options.Continue) {
		return false, nil
	}
	return q.views.index.Allows(ctx, q.attributes)
}

// HeldAt reports whether the user had the right to list all that the request selects at a
// revision, and false if the revision is before the history.
func (q *Request) HeldAt(ctx context.Context, revision int64) (bool, error) {
	if err := q.views.awaitRevision(ctx, revision); err != nil {
		return false, err
	}
	held, err := q.views.index.AllowsAt(ctx, q.attributes, revision)
	return held && revision >= q.views.index.Floor(), err
}

// Watch watches as View.Watch does, until the policy no longer allows to impersonate the
// user. If the path names a Namespace, and the user has the right to watch it, the watch ends
// when that right is gone.
func (q *Request) Watch(ctx context.Context, predicate storage.SelectionPredicate) (watch.Interface, error) {
	until := revocation.WatchImpersonated
	if q.attributes.GetNamespace() != "" {
		allowed, err := q.views.index.Allows(ctx, q.attributes)
		if err != nil {
			return nil, err
		}
		if allowed {
			until = revocation.Watch
		}
	}
	w, err := q.View.Watch(ctx, q.options, predicate)
	if err != nil {
		return nil, err
	}
	return until(ctx, w, rbac.NewAuthorizer(q.views.index)), nil
}

// sendsInitialEvents reports whether a watch begins with all objects.
func sendsInitialEvents(options *metainternalversion.ListOptions) bool {
	if options.SendInitialEvents != nil {
		return *options.SendInitialEvents
	}
	return options.ResourceVersion == "" || options.ResourceVersion == "0"
}

// rights returns the rights of the user by ClusterRoleBindings at a position.
func (w *View) rights(position int64) rbac.ClusterRights {
	if w.all {
		return rbac.ClusterRights{All: true, Access: rbac.AccessAdmin}
	}
	return w.views.index.ClusterRights(w.subjects, position)
}

// version returns the version of a Namespace at a position, or nil.
func (w *View) version(name string, position int64) *version {
	w.views.mu.RLock()
	defer w.views.mu.RUnlock()
	return w.views.namespaces.at(name, position)
}

// revisionAt returns the revision of etcd at a position.
func (w *View) revisionAt(position int64) int64 {
	w.views.mu.RLock()
	defer w.views.mu.RUnlock()
	return w.views.revisionAt(position)
}

// visible is what the user sees of a Namespace.
type visible struct {
	version *version // nil if the user does not see it
	access  rbac.Access
}

// visible returns what the user sees of a Namespace at a position, at which rights are
// those by ClusterRoleBindings.
func (w *View) visible(name string, position int64, rights *rbac.ClusterRights) visible {
	if n := w.version(name, position); n != nil {
		if seen, access := w.sees(name, position, rights); seen {
			return visible{n, access}
		}
	}
	return visible{}
}

// sees reports whether the user may get a Namespace at a position, at which rights are
// those by ClusterRoleBindings, and the access, if the view shows it.
func (w *View) sees(name string, position int64, rights *rbac.ClusterRights) (bool, rbac.Access) {
	seen := rights.All
	if !seen {
		_, seen = slices.BinarySearch(rights.Names, name)
	}
	if seen && (!w.asProjects || rights.Access == rbac.AccessAdmin) {
		return true, w.shown(rights.Access)
	}
	get, access := w.views.index.RightsIn(name, w.subjects, position)
	return seen || get, w.shown(max(rights.Access, access))
}

// shown returns the access to a Namespace that the user sees, or always the same if the
// view does not show it.
func (w *View) shown(access rbac.Access) rbac.Access {
	if !w.asProjects {
		return 0
	}
	return max(access, rbac.AccessCustom)
}

// object returns the object that shows a Namespace.
func (w *View) object(namespace *tenancy.Namespace, access rbac.Access) runtime.Object {
	if !w.asProjects {
		return namespace
	}
	return newProject(namespace, access)
}

// Authorize allows users to list and watch Namespaces, of which they see those that they
// may get. It has no opinion on anything else, and on users that are not authenticated.
func Authorize(_ context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
	if a.IsResourceRequest() && (a.GetVerb() == "list" || a.GetVerb() == "watch") &&
		coregroup.OwnGroup(a.GetAPIGroup(), a.GetResource()) == tenancy.GroupName && a.GetResource() == "namespaces" && a.GetSubresource() == "" &&
		a.GetUser() != nil && slices.Contains(a.GetUser().GetGroups(), user.AllAuthenticated) {
		return authorizer.DecisionAllow, "lists and watches have the Namespaces that the user may get", nil
	}
	return authorizer.DecisionNoOpinion, "", nil
}
