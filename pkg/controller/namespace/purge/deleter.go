// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package purge

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/metadata"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	tenancyerrors "github.com/borough-io/borough/pkg/apis/tenancy/errors"
	v1 "github.com/borough-io/borough/pkg/apis/tenancy/v1"
	tenancyv1 "github.com/borough-io/borough/pkg/generated/clientset/versioned/typed/tenancy/v1"
)

// maxConflicts is the number of attempts to write to a Namespace in one pass,
// each on a new read, while others write to it too.
const maxConflicts = 5

// DiscoverFunc returns the resources that are content, as discovery shows them
// after since. Discoverer.Discover is one.
type DiscoverFunc func(ctx context.Context, since time.Time) Discovered

// PurgedFunc is called with the number of objects that a purge has removed.
type PurgedFunc func(gvr schema.GroupVersionResource, count int)

// Client is the part of the generated client that a Deleter uses. It has to send
// JSON; see Deleter.createPurge.
type Client interface {
	tenancyv1.NamespacesGetter
	tenancyv1.NamespacePurgesGetter
}

// Deleter deletes the content of Terminating Namespaces and finalizes them. It is
// safe for concurrent use, except for the same Namespace.
type Deleter struct {
	client   Client
	content  metadata.Interface
	discover DiscoverFunc
	purged   PurgedFunc
	clock    clock.PassiveClock
}

// New returns a Deleter.
func New(client Client, content metadata.Interface, discover DiscoverFunc, purged PurgedFunc) *Deleter {
	return newDeleter(client, content, discover, purged, clock.RealClock{})
}

func newDeleter(client Client, content metadata.Interface, discover DiscoverFunc, purged PurgedFunc, clock clock.PassiveClock) *Deleter {
	return &Deleter{client: client, content: content, discover: discover, purged: purged, clock: clock}
}

// ContentRemainingError means that content is left that is marked for deletion
// and has to wait, for a finalizer or for the end of a Pod. The caller should
// make another pass when it is gone.
type ContentRemainingError struct {
	// Content is what remains, by resource. While Pods remain, it has only Pods.
	Content []Remaining
	// Failure is what went wrong besides, or nil.
	Failure error
}

// Remaining is the content of one resource that remains in a Namespace.
type Remaining struct {
	Resource
	// ResourceVersion is that of the list that showed the objects. A watch can
	// start from it.
	ResourceVersion string
	// Objects are the finalizers of each object.
	Objects map[types.UID][]string
}

// Error implements error.
func (e *ContentRemainingError) Error() string {
	var what []string
	for _, r := range e.Content {
		what = append(what, fmt.Sprintf("%d %s", len(r.Objects), r.GroupResource()))
	}
	slices.Sort(what)
	message := "content remains: " + strings.Join(what, ", ")
	if e.Failure != nil {
		message += "; " + e.Failure.Error()
	}
	return message
}

// Unwrap returns the Failure.
func (e *ContentRemainingError) Unwrap() error { return e.Failure }

// Delete makes one pass over a Namespace: it deletes the content and, when
// nothing is left, finalizes the Namespace. ns may be an older version of it. The
// Namespace has been known to be Terminating since the given time; discovery has
// to be more recent. progress is what earlier passes remember.
//
// Delete returns nil if there is nothing more to do: the Namespace is gone, has
// another UID, is not Terminating, or is held only by the finalizers of others. A
// *ContentRemainingError (in the sense of errors.As) means that content has to
// wait. Any other error is a failure to retry.
func (d *Deleter) Delete(ctx context.Context, ns *v1.Namespace, since time.Time, progress *Progress) error {
	if ns.DeletionTimestamp.IsZero() {
		return nil
	}
	in := incarnation{name: ns.Name, uid: ns.UID}
	finalize := slices.Equal(ns.Spec.Finalizers, []v1.FinalizerName{v1.FinalizerKubernetes}) && len(ns.Finalizers) == 0
	found, err := d.deleteContent(ctx, in, since, reportedToRemain(ns), finalize)
	if errors.Is(err, errGone) {
		return nil
	}
	if err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	progress.observe(ns, found, d.clock.Now())
	if found.err() == nil {
		var stays bool
		ns, stays, err = d.finalizeOrRemove(ctx, in, ns, found.purgeErr)
		if err == nil && !stays || errors.Is(err, errGone) {
			return nil
		}
		found.finalizeErr = err
	}
	err = d.updateStatus(ctx, in, ns, found, progress)
	if errors.Is(err, errGone) {
		return nil
	}
	return found.err(found.finalizeErr, err)
}

// reportedToRemain returns what an earlier pass has reported to remain.
func reportedToRemain(ns *v1.Namespace) []v1.RemainingResource {
	if ns.Status.Termination == nil {
		return nil
	}
	return ns.Status.Termination.Remaining
}

// finalizeOrRemove finalizes a Namespace without content. It returns the
// Namespace as it is then, and whether it stays because of the finalizers of
// others. It returns purgeErr, why the purge failed, if they hold the Namespace: the
// server then would not verify that it is empty.
func (d *Deleter) finalizeOrRemove(ctx context.Context, in incarnation, ns *v1.Namespace, purgeErr error) (*v1.Namespace, bool, error) {
	for range maxConflicts {
		held := len(othersFinalizers(ns)) > 0
		if held && purgeErr != nil {
			return ns, held, purgeErr
		}
		finalized, err := d.finalize(ctx, in, ns, held)
		if !apierrors.IsConflict(err) {
			return finalized, held, err
		}
		current, getErr := d.get(ctx, in)
		if getErr != nil {
			return ns, held, getErr
		}
		if current.ResourceVersion == ns.ResourceVersion {
			// The conflict is not about the version: the server sees content that
			// the lists of this pass did not show.
			return ns, held, err
		}
		ns = current
	}
	return ns, true, fmt.Errorf("finalize namespace %q: stopped after %d conflicts", in.name, maxConflicts)
}

// finalize removes the controller's finalizer from a Namespace. The server
// removes the Namespace together with its last finalizer, unless it has content: it
// then only removes the finalizer, and the change causes another pass. A Namespace
// without the finalizer is deleted instead, which fails while there is content.
func (d *Deleter) finalize(ctx context.Context, in incarnation, ns *v1.Namespace, held bool) (*v1.Namespace, error) {
	logger := klog.FromContext(ctx)
	switch {
	case slices.Contains(ns.Spec.Finalizers, v1.FinalizerKubernetes):
		logger.V(4).Info("Finalizing the namespace", "heldByOthers", held)
		finalized := &v1.Namespace{ObjectMeta: ns.ObjectMeta}
		finalized.Spec.Finalizers = slices.DeleteFunc(slices.Clone(ns.Spec.Finalizers), func(f v1.FinalizerName) bool {
			return f == v1.FinalizerKubernetes
		})
		updated, err := d.client.Namespaces().Finalize(ctx, in.name, finalized, metav1.UpdateOptions{})
		if err != nil {
			return ns, goneIfNotFound(fmt.Errorf("finalize namespace %q: %w", in.name, err))
		}
		return updated, nil
	case !held:
		logger.V(4).Info("Removing the namespace")
		err := d.client.Namespaces().Delete(ctx, in.name, metav1.DeleteOptions{
			PropagationPolicy: new(metav1.DeletePropagationBackground),
			// The policy would remove a finalizer that another has set since.
			Preconditions: &metav1.Preconditions{UID: &in.uid, ResourceVersion: &ns.ResourceVersion},
		})
		if err != nil {
			return ns, goneIfNotFound(fmt.Errorf("remove namespace %q: %w", in.name, err))
		}
	}
	return ns, nil
}

// updateStatus writes what was found to the status, if it has changed and a write
// is due.
func (d *Deleter) updateStatus(ctx context.Context, in incarnation, ns *v1.Namespace, found *findings, progress *Progress) error {
	conditions, termination := found.conditions(), found.termination()
	now := d.clock.Now()
	// If nothing was found, there may not be another pass.
	due := found.err(found.finalizeErr) == nil || progress.due(now)
	for range maxConflicts {
		old := ns.Status
		ns = ns.DeepCopy()
		changed := setConditions(&ns.Status, conditions, metav1.NewTime(now))
		changed = setTermination(&ns.Status, termination, progress.moved) || changed
		if !changed || !due && !mustWriteNow(&old, &ns.Status) {
			return nil
		}
		_, err := d.client.Namespaces().UpdateStatus(ctx, ns, metav1.UpdateOptions{})
		if err == nil {
			progress.wrote(now)
			return nil
		}
		if !apierrors.IsConflict(err) {
			return goneIfNotFound(fmt.Errorf("update status of namespace %q: %w", in.name, err))
		}
		if ns, err = d.get(ctx, in); err != nil {
			return err
		}
	}
	return fmt.Errorf("update status of namespace %q: stopped after %d conflicts", in.name, maxConflicts)
}

// get reads the Namespace. It returns errGone if the Namespace has another UID or
// is not Terminating.
func (d *Deleter) get(ctx context.Context, in incarnation) (*v1.Namespace, error) {
	ns, err := d.client.Namespaces().Get(ctx, in.name, metav1.GetOptions{})
	if err != nil {
		return nil, goneIfNotFound(fmt.Errorf("read namespace %q: %w", in.name, err))
	}
	if ns.UID != in.uid || ns.DeletionTimestamp.IsZero() {
		return nil, errGone
	}
	return ns, nil
}

// goneIfNotFound returns errGone if the error means that the Namespace does not exist.
func goneIfNotFound(err error) error {
	if tenancyerrors.IsObjectNotFound(err) {
		return errGone
	}
	return err
}
