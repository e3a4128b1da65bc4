// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package deletion

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
	"k8s.io/apimachinery/pkg/types"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/utils/ptr"

	v1 "github.com/borough-io/borough/pkg/apis/tenancy/v1"
)

const (
	// pageSize bounds the objects in one reply of a list.
	pageSize = 500
	// deleteWorkers bounds the deletes that are under way at once for a kind
	// that is deleted object by object; it is what the server does in a
	// deletecollection.
	deleteWorkers = 16
	// maxDeleteFailures ends a pass over a kind whose objects cannot be
	// deleted, so that a Namespace full of them leaves room for others.
	maxDeleteFailures = 100
	// maxReportedFailures bounds the failures that are told one by one.
	maxReportedFailures = 5
)

// kind is the content of one kind in a Namespace, as a pass finds it.
type kind struct {
	Resource
	inventory
	// straight is true for a kind that is deleted before anybody looks at it.
	straight bool
	// read is true when the inventory is complete and was made after the last
	// delete.
	read bool
	// err is what went wrong, nil when nothing did.
	err error
}

func (k *kind) gone() bool { return k.read && len(k.items) == 0 }

// inventory is what a list showed.
type inventory struct {
	items           map[types.UID]item
	resourceVersion string
	// total counts the items, also those that the list was not read for.
	total int
	// unasked counts the items that nobody has asked to go.
	unasked int
}

type item struct {
	name       string
	finalizers []string
	// deletion and grace are the object's deletionTimestamp and
	// deletionGracePeriodSeconds.
	deletion *metav1.Time
	grace    *int64
}

// isAsked tells whether deleting an object anew would change nothing. The two
// finalizers come from an earlier delete that asked for another propagation;
// a delete with background propagation takes them away.
func isAsked(object *metav1.PartialObjectMetadata) bool {
	return object.DeletionTimestamp != nil &&
		!slices.Contains(object.Finalizers, metav1.FinalizerOrphanDependents) &&
		!slices.Contains(object.Finalizers, metav1.FinalizerDeleteDependents)
}

// incarnation is one Namespace, told from others of its name by its UID.
type incarnation struct {
	name string
	uid  types.UID
}

// errGone means that the incarnation whose content is to be purged is no more,
// or is not being deleted after all: there is nothing left to do for it.
var errGone = errors.New("the namespace is gone")

// look lists a kind. Unless all is set it stops at the first page that has an
// object to delete.
func (d *Deleter) look(ctx context.Context, in incarnation, k *kind, all bool) {
	inv, complete, err := d.list(ctx, in, k.Resource, all)
	k.inventory, k.read = inv, complete
	if err != nil {
		k.err = utilerrors.NewAggregate([]error{k.err, fmt.Errorf("list %s: %w", k.GroupResource(), err)})
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
				name: object.Name, finalizers: object.Finalizers,
				deletion: object.DeletionTimestamp, grace: object.DeletionGracePeriodSeconds,
			}
			if !isAsked(object) {
				inv.unasked++
			}
		}
		inv.resourceVersion = page.ResourceVersion
		inv.total = len(inv.items)
		if page.Continue == "" {
			return inv, true, nil
		}
		if !all && inv.unasked > 0 {
			inv.total += int(ptr.Deref(page.RemainingItemCount, 0))
			return inv, false, nil
		}
		opts.Continue = page.Continue
	}
}

// purge deletes the content of some kinds side by side and lists what is left.
// It returns errGone when the incarnation turns out to be gone.
func (d *Deleter) purge(ctx context.Context, in incarnation, kinds []*kind) error {
	forEach(kinds, func(k *kind) {
		if k.err != nil || !k.straight && k.unasked == 0 {
			return
		}
		var gone bool
		var found int
		gone, found, k.err = d.delete(ctx, in, k.Resource)
		before := max(k.total, found)
		switch {
		case errors.Is(k.err, errGone):
			return
		case gone:
			k.inventory, k.read = inventory{}, true
		default:
			if d.look(ctx, in, k, true); k.gone() {
				k.err = nil // whatever it was
			}
		}
		if k.read && before > k.total {
			d.purged(k.GroupVersionResource, before-k.total)
		}
	})
	for _, k := range kinds {
		if errors.Is(k.err, errGone) {
			return errGone
		}
	}
	return nil
}

// check reads the Namespace live. It returns errGone unless it is still the
// same and terminating.
func (d *Deleter) check(ctx context.Context, in incarnation) error {
	_, err := d.get(ctx, in)
	return err
}

// delete asks for all objects of a kind to go. It tells whether the server has
// said that they are gone, and how many it knows that there were.
func (d *Deleter) delete(ctx context.Context, in incarnation, r Resource) (gone bool, found int, err error) {
	if r.Group != v1.GroupName || !r.DeleteCollection {
		// Other servers may not know what a deletecollection is bound to.
		if err := d.check(ctx, in); err != nil {
			return false, 0, err
		}
	}
	if r.DeleteCollection {
		// Whoever purges a Namespace sees to all that is in it, so the garbage
		// collector need not keep or follow dependents.
		opts := metav1.DeleteOptions{PropagationPolicy: ptr.To(metav1.DeletePropagationBackground)}
		c := &collection{namespaceUID: in.uid}
		err := d.content.Resource(r.GroupVersionResource).Namespace(in.name).
			DeleteCollection(withCollection(ctx, c), opts, metav1.ListOptions{})
		if err == nil {
			return c.gone, c.found, nil
		}
		if apierrors.IsConflict(err) {
			if err := d.check(ctx, in); err != nil {
				return false, 0, err
			}
		}
		// Other servers end a deletecollection at objects that may not be
		// deleted; ours names only the first. One by one, the others still go,
		// and each is named.
		if !r.Delete || !isRefused(err) {
			return false, 0, fmt.Errorf("delete all %s: %w", r.GroupResource(), err)
		}
	}
	found, err = d.deleteEach(ctx, in, r)
	return false, found, err
}

// isRefused tells whether the server refused a request for what it asked,
// rather than being unable to serve it just then.
func isRefused(err error) bool {
	return apierrors.IsForbidden(err) || apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) ||
		apierrors.IsMethodNotSupported(err) || apierrors.IsNotFound(err) || apierrors.IsInternalError(err)
}

// deleteEach lists a kind, makes sure that the list was of this incarnation,
// and deletes each object under the UID that was listed. It returns how many
// these were.
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
	// The order is that of a map: a pass that ends early begins elsewhere the
	// next time.
	for uid, it := range inv.items {
		if ctx.Err() != nil || tooMany() {
			break
		}
		workers.Go(func() error {
			err := d.content.Resource(r.GroupVersionResource).Namespace(in.name).Delete(ctx, it.name, metav1.DeleteOptions{
				PropagationPolicy: ptr.To(metav1.DeletePropagationBackground),
				Preconditions:     &metav1.Preconditions{UID: &uid},
			})
			// A conflict is another object by the same name.
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

// summarize joins errors in a stable order and a bounded number.
func summarize(errs []error) error {
	slices.SortFunc(errs, func(a, b error) int { return strings.Compare(a.Error(), b.Error()) })
	if more := len(errs) - maxReportedFailures; more > 0 {
		errs = append(errs[:maxReportedFailures:maxReportedFailures], fmt.Errorf("and %d more", more))
	}
	return utilerrors.NewAggregate(errs)
}

// forEach calls f for each kind, side by side.
func forEach(kinds []*kind, f func(*kind)) {
	var workers errgroup.Group
	workers.SetLimit(deleteWorkers)
	for _, k := range kinds {
		workers.Go(func() error {
			f(k)
			return nil
		})
	}
	_ = workers.Wait() // each kind has its own error
}
