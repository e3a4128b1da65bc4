// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package deletion

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/metadata"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"

	v1 "github.com/borough-io/borough/pkg/apis/tenancy/v1"
	tenancyv1 "github.com/borough-io/borough/pkg/generated/clientset/versioned/typed/tenancy/v1"
)

// maxConflicts bounds how often a write to a Namespace is tried anew within one
// pass, each time on a fresh read, when others write to it too.
const maxConflicts = 5

// DiscoverFunc returns the kinds of content as discovery shows them at some
// moment after since. Discoverer.Discover is one.
type DiscoverFunc func(ctx context.Context, since time.Time) Discovered

// PurgedFunc is told about objects that are gone for a purge's sake.
type PurgedFunc func(gvr schema.GroupVersionResource, count int)

// Deleter purges terminating Namespaces and lets go of them. It may be used for
// several Namespaces at once, but not twice at once for the same.
type Deleter struct {
	namespaces tenancyv1.NamespaceInterface
	content    metadata.Interface
	discover   DiscoverFunc
	purged     PurgedFunc
	clock      clock.PassiveClock
}

// New returns a Deleter. The metadata client should be made from ContentConfig.
func New(namespaces tenancyv1.NamespaceInterface, content metadata.Interface, discover DiscoverFunc, purged PurgedFunc) *Deleter {
	return newDeleter(namespaces, content, discover, purged, clock.RealClock{})
}

func newDeleter(namespaces tenancyv1.NamespaceInterface, content metadata.Interface, discover DiscoverFunc, purged PurgedFunc, clock clock.PassiveClock) *Deleter {
	return &Deleter{namespaces: namespaces, content: content, discover: discover, purged: purged, clock: clock}
}

// ContentRemainingError tells that content is left which was asked to go and
// waits for others: for a finalizer, or for whoever runs a Pod. The caller is
// expected to come back when it is gone.
type ContentRemainingError struct {
	// Content is what remains, by kind. It names only kinds whose turn it is:
	// while Pods remain, only Pods.
	Content []Remaining
	// Failure is what went wrong besides; nil when nothing did.
	Failure error
}

// Remaining is the content of one kind that remains in a Namespace.
type Remaining struct {
	Resource
	// ResourceVersion is that of the list that showed the objects. A watch
	// that starts from it misses nothing.
	ResourceVersion string
	// Objects has the finalizers of each object.
	Objects map[types.UID][]string
}

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

func (e *ContentRemainingError) Unwrap() error { return e.Failure }

// Delete makes one pass over a Namespace: it purges the content and, when
// nothing is left, lets go of the Namespace. The Namespace may be an older
// state of it. It has been known to be terminating since the given time, which
// decides how recent discovery has to be. What progress remembers of it decides
// what its status says about the past, and when it is written.
//
// Delete returns nil when there is nothing more to do: the Namespace is gone,
// has become another, is not terminating, or is held by others alone. An error
// that is (in the sense of errors.As) a *ContentRemainingError says that
// content waits for others; any other error is a failure to be tried again.
func (d *Deleter) Delete(ctx context.Context, ns *v1.Namespace, since time.Time, progress *Progress) error {
	if ns.DeletionTimestamp.IsZero() {
		return nil
	}
	in := incarnation{name: ns.Name, uid: ns.UID}
	found, err := d.purgeContent(ctx, in, since, nothingKnown(ns))
	if err != nil {
		return ignoreGone(err)
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	progress.observe(ns, found, d.clock.Now())
	if found.err() == nil {
		var stays bool
		ns, stays, err = d.release(ctx, in, ns)
		if err == nil && !stays || errors.Is(err, errGone) {
			return nil
		}
		found.held = err
	}
	err = d.updateStatus(ctx, in, ns, found, progress)
	if errors.Is(err, errGone) {
		return nil
	}
	return found.err(found.held, err)
}

// nothingKnown tells whether no earlier pass has found content that stays.
func nothingKnown(ns *v1.Namespace) bool {
	return ns.Status.Termination == nil || len(ns.Status.Termination.Remaining) == 0
}

// purgeContent deletes what can be deleted now and reports what it found. With
// straight set it does not look first at what our own server can be asked to
// delete at once: usually all of it goes, and the server says so.
func (d *Deleter) purgeContent(ctx context.Context, in incarnation, since time.Time, straight bool) (*findings, error) {
	discovered := d.discover(ctx, since)
	found := &findings{Discovered: discovered}
	var pods, others []*kind
	for _, r := range discovered.Resources {
		k := &kind{Resource: r, straight: straight && r.Group == v1.GroupName && r.DeleteCollection}
		found.kinds = append(found.kinds, k)
		if isPods(r) {
			pods = append(pods, k)
		} else {
			others = append(others, k)
		}
	}
	forEach(found.kinds, func(k *kind) {
		if !k.straight {
			d.look(ctx, in, k, false)
		}
	})

	if err := d.purge(ctx, in, pods); err != nil {
		return nil, err
	}
	if slices.ContainsFunc(pods, func(k *kind) bool { return !k.gone() }) {
		found.podsFirst = true
		// The others have to wait, but are told truthfully.
		forEach(others, func(k *kind) {
			if !k.read && k.err == nil {
				d.look(ctx, in, k, true)
			}
		})
		return found, nil
	}
	return found, d.purge(ctx, in, others)
}

// isPods tells Pods, whose containers run until they are deleted and may need
// the rest of the content to end well.
func isPods(r Resource) bool {
	return r.GroupResource() == v1.Resource("pods") || r.GroupResource() == corev1.Resource("pods")
}

// release lets go of a Namespace without content. It returns the Namespace as
// it is then, and whether it stays for others' sake.
func (d *Deleter) release(ctx context.Context, in incarnation, ns *v1.Namespace) (*v1.Namespace, bool, error) {
	for range maxConflicts {
		held := len(othersFinalizers(ns)) > 0
		released, err := d.letGo(ctx, in, ns, held)
		if !apierrors.IsConflict(err) {
			return released, held, err
		}
		fresh, getErr := d.get(ctx, in)
		if getErr != nil {
			return ns, held, getErr
		}
		if fresh.ResourceVersion == ns.ResourceVersion {
			// Not for what was sent: the server sees content that the lists of
			// this pass did not show.
			return ns, held, err
		}
		ns = fresh
	}
	return ns, true, fmt.Errorf("finalize namespace %q: given up for now after %d conflicts", in.name, maxConflicts)
}

// letGo takes the own finalizer from a Namespace, which the server removes with
// the last one. Where the finalizer is no longer there (someone else took it
// while there was content to wait for) a removal still has to be asked for.
func (d *Deleter) letGo(ctx context.Context, in incarnation, ns *v1.Namespace, held bool) (*v1.Namespace, error) {
	logger := klog.FromContext(ctx)
	switch {
	case slices.Contains(ns.Spec.Finalizers, v1.FinalizerKubernetes):
		logger.V(4).Info("Finalizing the namespace", "heldByOthers", held)
		finalized := &v1.Namespace{ObjectMeta: ns.ObjectMeta}
		finalized.Spec.Finalizers = slices.DeleteFunc(slices.Clone(ns.Spec.Finalizers), func(f v1.FinalizerName) bool {
			return f == v1.FinalizerKubernetes
		})
		released, err := d.namespaces.Finalize(ctx, in.name, finalized, metav1.UpdateOptions{})
		if err != nil {
			return ns, goneIfNotFound(fmt.Errorf("finalize namespace %q: %w", in.name, err))
		}
		return released, nil
	case !held:
		logger.V(4).Info("Removing the namespace")
		err := d.namespaces.Delete(ctx, in.name, metav1.DeleteOptions{
			PropagationPolicy: ptr.To(metav1.DeletePropagationBackground),
			Preconditions:     &metav1.Preconditions{UID: &in.uid},
		})
		if err != nil {
			return ns, goneIfNotFound(fmt.Errorf("remove namespace %q: %w", in.name, err))
		}
	}
	return ns, nil
}

// updateStatus writes what was found into the status, if that changes it and a
// write is due.
func (d *Deleter) updateStatus(ctx context.Context, in incarnation, ns *v1.Namespace, found *findings, progress *Progress) error {
	conditions, termination := found.conditions(), found.termination()
	now := d.clock.Now()
	// Where nothing was found, there may be no other pass that could write it.
	due := found.err(found.held) == nil || progress.due(now)
	for range maxConflicts {
		old := ns.Status
		ns = ns.DeepCopy()
		changed := setConditions(&ns.Status, conditions, metav1.NewTime(now))
		changed = setTermination(&ns.Status, termination, progress.moved) || changed
		if !changed || !due && !overstates(&old, &ns.Status) {
			return nil
		}
		_, err := d.namespaces.UpdateStatus(ctx, ns, metav1.UpdateOptions{})
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
	return fmt.Errorf("update status of namespace %q: given up for now after %d conflicts", in.name, maxConflicts)
}

// get reads the Namespace live. It returns errGone unless it is still the same
// and terminating.
func (d *Deleter) get(ctx context.Context, in incarnation) (*v1.Namespace, error) {
	ns, err := d.namespaces.Get(ctx, in.name, metav1.GetOptions{})
	if err != nil {
		return nil, goneIfNotFound(fmt.Errorf("read namespace %q: %w", in.name, err))
	}
	if ns.UID != in.uid || ns.DeletionTimestamp.IsZero() {
		return nil, errGone
	}
	return ns, nil
}

func goneIfNotFound(err error) error {
	if apierrors.IsNotFound(err) {
		return errGone
	}
	return err
}

func ignoreGone(err error) error {
	if errors.Is(err, errGone) {
		return nil
	}
	return err
}
