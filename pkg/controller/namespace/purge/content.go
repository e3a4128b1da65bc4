// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package purge

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/utils/ptr"

	v1 "github.com/borough-io/borough/pkg/apis/tenancy/v1"
)

// The bounds on the memory that the content of a Namespace takes: the metadata of an object
// can have more than 1 MB.
const (
	// pageSize is the maximum number of objects in one response to a list.
	pageSize = 100
	// maxConsidered is the number of finalizers of an object that are considered.
	maxConsidered = 100
)

// Finalizers returns the first finalizers of an object.
func Finalizers(object metav1.Object) []string {
	finalizers := object.GetFinalizers()
	if len(finalizers) <= maxConsidered {
		return finalizers
	}
	return slices.Clone(finalizers[:maxConsidered]) // without the memory of the others
}

// incarnation is one Namespace. Its UID distinguishes it from others with the
// same name.
type incarnation struct {
	name string
	uid  types.UID
}

// errGone means that the incarnation no longer exists, or is not being deleted:
// there is nothing to do for it.
var errGone = errors.New("the namespace is gone")

// resourceState is the content of one resource in a Namespace, as a pass finds it.
type resourceState struct {
	Resource
	inventory
	// listed means that there is an inventory, complete or not.
	listed bool
	// read means that the inventory is complete and that nothing was deleted
	// since.
	read bool
	// unserved means that the server answered a list with 404 or 405, although
	// discovery shows the resource.
	unserved bool
	// err is what went wrong, or nil.
	err error
}

func (r *resourceState) is(group, resource string) bool {
	return r.Group == group && r.GroupVersionResource.Resource == resource
}

func (r *resourceState) gone() bool { return r.read && len(r.items) == 0 }

// set sets the result of a list.
func (r *resourceState) set(inv inventory, complete bool) {
	r.inventory, r.listed, r.read = inv, true, complete
}

// inventory is the result of a list.
type inventory struct {
	items           map[types.UID]item
	resourceVersion string
	// total is the number of objects, including those in pages that were not
	// read.
	total int
	// notDeleting is the number of objects that still have to be deleted.
	notDeleting int
}

type item struct {
	name       string
	finalizers []string
	// deletion and grace are the object's deletionTimestamp and
	// deletionGracePeriodSeconds.
	deletion *metav1.Time
	grace    *int64
}

// isDeleting reports whether another delete would change nothing. Without finalizers and a
// grace period, the object was marked by a delete that then failed to remove it. The two
// finalizers come from an earlier delete with another propagation policy; a delete with
// background propagation removes them.
func isDeleting(object *metav1.PartialObjectMetadata) bool {
	if object.DeletionTimestamp == nil || len(object.Finalizers) == 0 && ptr.Deref(object.DeletionGracePeriodSeconds, 0) == 0 {
		return false
	}
	return !slices.Contains(object.Finalizers, metav1.FinalizerOrphanDependents) &&
		!slices.Contains(object.Finalizers, metav1.FinalizerDeleteDependents)
}

// isPods reports whether a resource is Pods. Their containers run until they are
// deleted, and may need the other content to shut down.
func isPods(r Resource) bool {
	return r.GroupResource() == v1.Resource("pods") || r.GroupResource() == corev1.Resource("pods")
}

// split separates Pods from other resources.
func split(resources []*resourceState) (pods, others []*resourceState) {
	for _, r := range resources {
		if isPods(r.Resource) {
			pods = append(pods, r)
		} else {
			others = append(others, r)
		}
	}
	return pods, others
}

func allGone(resources []*resourceState) bool {
	return !slices.ContainsFunc(resources, func(r *resourceState) bool { return !r.gone() })
}

// haveWork reports whether some of the resources have objects that still have to
// be deleted.
func haveWork(resources []*resourceState) bool {
	return slices.ContainsFunc(resources, func(r *resourceState) bool { return r.err == nil && r.notDeleting > 0 })
}

// deleteContent deletes what can be deleted now, and returns what it found. Unless
// something was reported to remain, it purges our own resources without listing them
// first. With finalize it also removes the Namespace in the same request, if there is
// no other content.
func (d *Deleter) deleteContent(ctx context.Context, in incarnation, since time.Time, reported []v1.RemainingResource, finalize bool) (*findings, error) {
	found := &findings{Discovered: d.discover(ctx, since)}
	var own, foreign []*resourceState
	for _, r := range found.Resources {
		state := &resourceState{Resource: r}
		found.resources = append(found.resources, state)
		if r.Group == v1.GroupName {
			own = append(own, state)
		} else {
			foreign = append(foreign, state)
		}
	}
	// What a server purges besides our own resources, only a purge shows.
	skipList := !slices.ContainsFunc(reported, func(r v1.RemainingResource) bool {
		return slices.ContainsFunc(found.resources, func(state *resourceState) bool { return state.is(r.Group, r.Resource) })
	})
	toList := found.resources
	if skipList {
		toList = foreign
	}
	forEach(toList, func(r *resourceState) { d.listContent(ctx, in, r, false) })
	d.dropUnserved(ctx, found.resources)

	// All content has to be known, and gone.
	finalize = finalize && allGone(foreign) && found.Failure == nil && found.ParseFailure == nil
	ownPods, ownOthers := split(own)
	// While another delete would change none of the Pods that are left, nor does a purge.
	for again := skipList || haveWork(ownPods) || allGone(ownPods); again; {
		var err error
		if again, err = d.purge(ctx, in, found, ownPods, ownOthers, finalize); err != nil {
			return nil, err
		}
	}

	foreignPods, foreignOthers := split(foreign)
	if err := d.deleteResources(ctx, in, foreignPods); err != nil {
		return nil, err
	}
	if allGone(ownPods) && allGone(foreignPods) {
		return found, d.deleteResources(ctx, in, foreignOthers)
	}
	found.podsFirst = true
	// The other resources have to wait. The status reports them all the same.
	forEach(slices.Concat(ownOthers, foreignOthers), func(r *resourceState) {
		if !r.read && r.err == nil {
			d.listContent(ctx, in, r, true)
		}
	})
	return found, nil
}

// listContent lists a resource. Unless all is set, it stops after the first page
// that has an object to delete.
func (d *Deleter) listContent(ctx context.Context, in incarnation, r *resourceState, all bool) {
	inv, complete, err := d.list(ctx, in, r.Resource, all)
	r.set(inv, complete)
	r.unserved = apierrors.IsNotFound(err) || apierrors.IsMethodNotSupported(err)
	if err != nil {
		r.err = utilerrors.NewAggregate([]error{r.err, fmt.Errorf("list %s: %w", r.GroupResource(), err)})
	}
}

// dropUnserved assumes that a resource which its server does not serve is empty,
// if discovery no longer shows the resource either: the pass may have begun before
// it was removed. Kubernetes trusts the 404 or 405 alone (kubernetes#22413); if
// discovery contradicts it, the server may still be starting, and objects would be
// left behind.
func (d *Deleter) dropUnserved(ctx context.Context, resources []*resourceState) {
	if !slices.ContainsFunc(resources, func(r *resourceState) bool { return r.unserved }) {
		return
	}
	now := d.discover(ctx, d.clock.Now())
	if now.Failure != nil || now.ParseFailure != nil {
		return
	}
	for _, r := range resources {
		// All versions of a resource have the same objects.
		served := slices.ContainsFunc(now.Resources, func(other Resource) bool { return other.GroupResource() == r.GroupResource() })
		if r.unserved && !served {
			r.set(inventory{}, true)
			r.unserved, r.err = false, nil
		}
	}
}

func (d *Deleter) list(ctx context.Context, in incarnation, r Resource, all bool) (inv inventory, complete bool, err error) {
	opts := metav1.ListOptions{Limit: pageSize}
	inv.items = map[types.UID]item{}
	for {
		page, err := d.content.Resource(r.GroupVersionResource).Namespace(in.name).List(ctx, opts)
		if apierrors.IsResourceExpired(err) && opts.Continue != "" {
			opts, inv = metav1.ListOptions{}, inventory{items: map[types.UID]item{}}
			continue
		}
		if err != nil {
			return inventory{}, false, err
		}
		for i := range page.Items {
			object := &page.Items[i]
			inv.items[object.UID] = item{
				name: object.Name, finalizers: Finalizers(object),
				deletion: object.DeletionTimestamp, grace: object.DeletionGracePeriodSeconds,
			}
			if !isDeleting(object) {
				inv.notDeleting++
			}
		}
		inv.resourceVersion = page.ResourceVersion
		inv.total = len(inv.items)
		if page.Continue == "" {
			return inv, true, nil
		}
		if !all && inv.notDeleting > 0 {
			inv.total += int(ptr.Deref(page.RemainingItemCount, 0))
			return inv, false, nil
		}
		opts.Continue = page.Continue
	}
}

// check reads the Namespace. It returns errGone if the Namespace has another UID
// or is not Terminating.
func (d *Deleter) check(ctx context.Context, in incarnation) error {
	_, err := d.get(ctx, in)
	return err
}

// forEach calls f for each resource, concurrently.
func forEach(resources []*resourceState, f func(*resourceState)) {
	var workers errgroup.Group
	workers.SetLimit(deleteWorkers)
	for _, r := range resources {
		workers.Go(func() error {
			f(r)
			return nil
		})
	}
	_ = workers.Wait() // each resource has its own error
}
