// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package purge

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/klog/v2"

	v1 "github.com/borough-io/borough/pkg/apis/tenancy/v1"
)

const (
	// deleteWorkers is the number of concurrent requests for resources, or for
	// the objects of one resource.
	deleteWorkers = 16
	// maxDeleteFailures ends a pass over a resource whose objects cannot be
	// deleted, so that other Namespaces do not wait.
	maxDeleteFailures = 100
	// maxReportedFailures is the number of failures that an error names.
	maxReportedFailures = 5
)

// purge deletes the content of our own group with a NamespacePurge. With finalize,
// the purge also removes the Namespace if nothing else holds it. It returns errGone
// if the incarnation is gone then; other errors become those of the resources that
// are to be deleted now, which are Pods as long as there are any. It reports whether
// another purge is needed: this one stopped at Pods, and they are gone now.
func (d *Deleter) purge(ctx context.Context, in incarnation, found *findings, pods, others []*resourceState, finalize bool) (again bool, err error) {
	status, err := d.createPurge(ctx, in, finalize)
	found.purgeErr = err
	switch {
	case errors.Is(err, errGone):
		return false, err
	case err == nil:
		d.countPurged(status)
		if status.Finalized {
			return false, errGone
		}
		apply := func(r *resourceState) { d.applyPurge(ctx, in, r, status) }
		forEach(pods, apply)
		forEach(others, apply)
		d.addHeld(ctx, in, found, status)
		held := func(r *resourceState) bool {
			return slices.ContainsFunc(status.Purged, func(p v1.PurgedResource) bool { return r.is(p.Group, p.Resource) && p.Held > 0 })
		}
		return slices.ContainsFunc(pods, held) && allGone(pods), nil
	case isRefused(err):
		// The server, or its admission, refuses the purge or the deletion of an
		// object. One by one, the other objects are still deleted, and the error
		// names those that are not.
		klog.FromContext(ctx).V(2).Info("The namespace cannot be purged at once, deleting its objects one by one", "err", err)
		if err := d.deleteResources(ctx, in, pods); err != nil || !allGone(pods) {
			return false, err
		}
		return false, d.deleteResources(ctx, in, others)
	}
	fail := func(r *resourceState) {
		r.err = err
		d.listContent(ctx, in, r, true)
		switch {
		case isUnread(err, r.GroupVersionResource):
			r.read = false // lists do not have them
		case r.gone():
			r.err = nil
		}
	}
	if forEach(pods, fail); allGone(pods) {
		forEach(others, fail)
	}
	return false, nil
}

// createPurge creates a NamespacePurge and returns its status. It returns errGone
// if the incarnation is gone.
//
// A server of an earlier release refuses a purge with a field that it does not know,
// because validation is strict and the client sends JSON: in protobuf, such a field
// would be ignored.
func (d *Deleter) createPurge(ctx context.Context, in incarnation, finalize bool) (*v1.NamespacePurgeStatus, error) {
	purge := &v1.NamespacePurge{Spec: v1.NamespacePurgeSpec{NamespaceUID: in.uid, Finalize: finalize}}
	purge, err := d.client.NamespacePurges(in.name).Create(ctx, purge, metav1.CreateOptions{FieldValidation: metav1.FieldValidationStrict})
	if err == nil {
		return &purge.Status, nil
	}
	if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
		if err := d.check(ctx, in); err != nil {
			return nil, err
		}
	}
	return nil, fmt.Errorf("purge the namespace: %w", err)
}

// countPurged counts the objects that a purge has removed.
func (d *Deleter) countPurged(status *v1.NamespacePurgeStatus) {
	for _, p := range status.Purged {
		if p.Removed > 0 {
			d.purged(resourceOf(p), int(p.Removed))
		}
	}
}

// resourceOf returns the resource of a purge. Its version is that of all resources of a purge.
func resourceOf(p v1.PurgedResource) schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: p.Group, Version: v1.SchemeGroupVersion.Version, Resource: p.Resource}
}

// applyPurge updates a resource with the status of a purge.
func (d *Deleter) applyPurge(ctx context.Context, in incarnation, r *resourceState, status *v1.NamespacePurgeStatus) {
	r.err = nil // that of a list before the purge
	i := slices.IndexFunc(status.Purged, func(p v1.PurgedResource) bool { return r.is(p.Group, p.Resource) })
	if i < 0 {
		// Pods remain, or another server handled the purge and does not have this
		// resource.
		if !r.read {
			d.listContent(ctx, in, r, true)
		}
		return
	}
	if status.Purged[i].Held == 0 {
		r.set(inventory{}, true)
		return
	}
	d.listContent(ctx, in, r, true)
}

// addHeld adds what remains of resources that a purge has deleted and that the
// controller does not discover: on a standalone server, rights are content, too. The
// controller never deletes objects of these resources itself: behind a cluster they
// would be those of the cluster.
func (d *Deleter) addHeld(ctx context.Context, in incarnation, found *findings, status *v1.NamespacePurgeStatus) {
	for _, p := range status.Purged {
		if p.Held == 0 || slices.ContainsFunc(found.resources, func(r *resourceState) bool { return r.is(p.Group, p.Resource) }) {
			continue
		}
		state := &resourceState{Resource: Resource{GroupVersionResource: resourceOf(p), Watch: true}}
		d.listContent(ctx, in, state, true)
		found.resources = append(found.resources, state)
	}
}

// deleteResources deletes the content of some resources concurrently and lists
// what is left. It returns errGone if the incarnation is gone.
func (d *Deleter) deleteResources(ctx context.Context, in incarnation, resources []*resourceState) error {
	forEach(resources, func(r *resourceState) {
		if r.err != nil || r.listed && r.notDeleting == 0 {
			return
		}
		var found int
		if found, r.err = d.deleteAll(ctx, in, r.Resource); errors.Is(r.err, errGone) {
			return
		}
		before := max(r.total, found)
		if d.listContent(ctx, in, r, true); r.gone() {
			r.err = nil
		}
		if r.read && before > r.total {
			d.purged(r.GroupVersionResource, before-r.total)
		}
	})
	for _, r := range resources {
		if errors.Is(r.err, errGone) {
			return errGone
		}
	}
	return nil
}

// isUnread reports whether a purge has stopped at objects of a resource that cannot be read.
func isUnread(err error, resource schema.GroupVersionResource) bool {
	var answer apierrors.APIStatus
	if !errors.As(err, &answer) || answer.Status().Reason != metav1.StatusReasonStoreReadError {
		return false
	}
	details := answer.Status().Details
	return details != nil && details.Group == resource.Group && details.Kind == resource.Resource
}

// deleteAll deletes all objects of a resource, and returns how many of them it
// knows.
func (d *Deleter) deleteAll(ctx context.Context, in incarnation, r Resource) (found int, err error) {
	// In our own group, a deletecollection has no place: it is not bound to the
	// incarnation. In other groups there is nothing better.
	if r.DeleteCollection && r.Group != v1.GroupName {
		if err := d.check(ctx, in); err != nil {
			return 0, err
		}
		// All content is deleted, so the garbage collector need not keep or follow
		// dependents.
		opts := metav1.DeleteOptions{PropagationPolicy: new(metav1.DeletePropagationBackground)}
		err := d.content.Resource(r.GroupVersionResource).Namespace(in.name).DeleteCollection(ctx, opts, metav1.ListOptions{})
		if err == nil {
			return 0, nil
		}
		// Many servers stop a deletecollection at the first object that may not
		// be deleted, or whose webhook fails, which is an internal error. One by one,
		// the other objects are still deleted.
		if !r.Delete || !isRefused(err) && !apierrors.IsInternalError(err) {
			return 0, fmt.Errorf("delete all %s: %w", r.GroupResource(), err)
		}
	}
	return d.deleteEach(ctx, in, r)
}

// isRefused reports whether the server refused a request because of what it asks,
// and not because the server was unable to handle requests at that moment. An internal
// error, which is also that of a webhook that fails, is of the latter kind: our server
// stops a purge for it, too.
func isRefused(err error) bool {
	return apierrors.IsForbidden(err) || apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) ||
		apierrors.IsMethodNotSupported(err) || apierrors.IsNotFound(err)
}

// deleteEach lists a resource, then verifies that the list is of this
// incarnation, and deletes each object with the UID that was listed. It returns
// the number of objects.
func (d *Deleter) deleteEach(ctx context.Context, in incarnation, r Resource) (found int, err error) {
	inv, _, err := d.list(ctx, in, r, true)
	if err != nil {
		return 0, fmt.Errorf("list %s to delete them: %w", r.GroupResource(), err)
	}
	if err := d.check(ctx, in); err != nil {
		return 0, err
	}
	var (
		mu       sync.Mutex
		failures []error
		workers  errgroup.Group
	)
	tooMany := func() bool {
		mu.Lock()
		defer mu.Unlock()
		return len(failures) >= maxDeleteFailures
	}
	workers.SetLimit(deleteWorkers)
	// The order is that of a map, so a pass that ends early begins with other
	// objects the next time.
	for uid, it := range inv.items {
		if ctx.Err() != nil || tooMany() {
			break
		}
		workers.Go(func() error {
			err := d.content.Resource(r.GroupVersionResource).Namespace(in.name).Delete(ctx, it.name, metav1.DeleteOptions{
				PropagationPolicy: new(metav1.DeletePropagationBackground),
				Preconditions:     &metav1.Preconditions{UID: &uid},
			})
			// A conflict means that another object has the name.
			if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
				mu.Lock()
				defer mu.Unlock()
				failures = append(failures, fmt.Errorf("delete %s %q: %w", r.GroupResource(), it.name, err))
			}
			return nil
		})
	}
	_ = workers.Wait() // failures has the errors
	return inv.total, summarize(failures)
}

// summarize joins errors, in a stable order and up to a number.
func summarize(errs []error) error {
	slices.SortFunc(errs, func(a, b error) int { return strings.Compare(a.Error(), b.Error()) })
	if more := len(errs) - maxReportedFailures; more > 0 {
		errs = append(errs[:maxReportedFailures:maxReportedFailures], fmt.Errorf("and %d more", more))
	}
	return utilerrors.NewAggregate(errs)
}
