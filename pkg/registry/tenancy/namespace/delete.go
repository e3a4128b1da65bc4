// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package namespace

import (
	"context"
	"errors"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/storage"
	storageerr "k8s.io/apiserver/pkg/storage/errors"
	"k8s.io/apiserver/pkg/util/dryrun"

	"github.com/borough-io/borough/pkg/apis/tenancy"
	tenancyerrors "github.com/borough-io/borough/pkg/apis/tenancy/errors"
	v1 "github.com/borough-io/borough/pkg/apis/tenancy/v1"
	"github.com/borough-io/borough/pkg/registry/deletion"
)

// Delete takes a Namespace one step along its termination. The first call marks
// it Terminating; once nothing holds it, a call removes it. A Namespace that
// nothing holds to begin with, neither a finalizer nor content, is marked and
// removed in the same call; while etcd is full, it is removed without the mark. The
// object is returned as it was left, with whether it was removed.
//
// It returns NotFound for an absent Namespace, and Conflict where a precondition
// does not hold, with the cause NamespaceProtectedCause where the Namespace is
// protected and, with the cause NamespaceNotEmptyCause, where only content holds
// a Namespace that is Terminating.
func (r *REST) Delete(ctx context.Context, name string, deleteValidation rest.ValidateObjectFunc, options *metav1.DeleteOptions) (runtime.Object, bool, error) {
	if options == nil {
		options = &metav1.DeleteOptions{}
	}
	options = deletion.Propagation(r.store, options)
	// The cached Namespace suffices to mark it, because the write fails if it has
	// changed. That saves a read from etcd.
	obj, err := r.store.Get(ctx, name, &metav1.GetOptions{ResourceVersion: "0"})
	if ns, ok := obj.(*tenancy.Namespace); err == nil && ok && ns.DeletionTimestamp.IsZero() {
		obj, removed, err := r.delete(ctx, ns, deleteValidation, options)
		stale := apierrors.IsNotFound(err) || apierrors.IsConflict(err) &&
			!apierrors.HasStatusCause(err, v1.NamespaceProtectedCause) && !apierrors.HasStatusCause(err, v1.NamespaceNotEmptyCause)
		if !stale {
			return obj, removed, err
		}
	}
	if obj, err = r.store.Get(ctx, name, &metav1.GetOptions{}); err != nil {
		return nil, false, err
	}
	return r.delete(ctx, obj.(*tenancy.Namespace), deleteValidation, options)
}

// delete is Delete for a Namespace that was read.
func (r *REST) delete(ctx context.Context, ns *tenancy.Namespace, deleteValidation rest.ValidateObjectFunc, options *metav1.DeleteOptions) (runtime.Object, bool, error) {
	name := ns.Name
	options, err := withUIDPrecondition(ns, options)
	if err != nil {
		return nil, false, err
	}

	if ns.DeletionTimestamp.IsZero() {
		var marked bool
		ns, marked, err = r.markTerminating(ctx, name, deleteValidation, options)
		switch {
		case tenancyerrors.IsStorageFull(err):
			return r.removeUnmarked(ctx, name, deleteValidation, options, err)
		case err != nil:
			return nil, false, err
		}
		if marked {
			return r.removeMarked(ctx, ns, options)
		}
	}

	if len(ns.Spec.Finalizers) != 0 {
		return ns, false, nil
	}
	return r.remove(ctx, name, deleteValidation, options)
}

// removeMarked removes ns, which this request has made Terminating, if nothing holds it.
// Otherwise it returns ns.
func (r *REST) removeMarked(ctx context.Context, ns *tenancy.Namespace, options *metav1.DeleteOptions) (runtime.Object, bool, error) {
	if len(ns.Spec.Finalizers) != 0 || len(ns.Finalizers) != 0 || dryrun.IsDryRun(options.DryRun) {
		return ns, false, nil
	}
	// Admission has agreed, and the mark has moved the resource version.
	options.Preconditions.ResourceVersion = nil
	obj, removed, err := r.remove(ctx, ns.Name, rest.ValidateAllObjectFunc, options)
	switch {
	case apierrors.HasStatusCause(err, v1.NamespaceNotEmptyCause):
		return ns, false, nil
	case apierrors.IsNotFound(err), apierrors.IsConflict(err): // another client was first
		return ns, true, nil
	}
	return obj, removed, err
}

// remove removes a Terminating Namespace, or returns it as it is if it has a finalizer in
// its spec by then.
func (r *REST) remove(ctx context.Context, name string, deleteValidation rest.ValidateObjectFunc, options *metav1.DeleteOptions) (runtime.Object, bool, error) {
	var held runtime.Object
	validate := func(ctx context.Context, obj runtime.Object) error {
		if len(obj.(*tenancy.Namespace).Spec.Finalizers) != 0 {
			held = obj.DeepCopyObject()
			return errHeld
		}
		return deleteValidation(ctx, obj)
	}
	removing := *r.store
	removing.Storage.Storage = reporting{r.store.Storage.Storage}
	obj, removed, err := deletion.Delete(ctx, &removing, name, validate, options)
	if errors.Is(err, errHeld) {
		return held, false, nil
	}
	// A dry run does not use the storage.
	if ns, ok := obj.(*tenancy.Namespace); ok && dryrun.IsDryRun(options.DryRun) {
		ns = ns.DeepCopy() // the cache may have what is in it
		UpdateTermination(ns)
		obj = ns
	}
	return obj, removed, err
}

// reporting is the storage of a deletion. The policy of the deletion can change the
// finalizers of a Namespace without the strategy.
type reporting struct{ storage.Interface }

// GuaranteedUpdate updates a Namespace.
func (r reporting) GuaranteedUpdate(ctx context.Context, key string, out runtime.Object, ignoreNotFound bool,
	preconditions *storage.Preconditions, update storage.UpdateFunc, cached runtime.Object) error {
	updateTermination := func(obj runtime.Object, response storage.ResponseMeta) (runtime.Object, *uint64, error) {
		updated, ttl, err := update(obj, response)
		if err == nil {
			UpdateTermination(updated.(*tenancy.Namespace))
		}
		return updated, ttl, err
	}
	return r.Interface.GuaranteedUpdate(ctx, key, out, ignoreNotFound, preconditions, updateTermination, cached)
}

// GetCorruptObjDeleter returns what deletes a Namespace that cannot be read from
// storage: in one step, because neither finalizers nor a phase can be read. The
// fence still keeps it while there is content in it: Conflict with the cause
// NamespaceNotEmptyCause.
func (r *REST) GetCorruptObjDeleter() rest.GracefulDeleter { return r.store.GetCorruptObjDeleter() }

// withUIDPrecondition returns a copy of options with the UID of ns as a
// precondition, or Conflict if ns does not meet the preconditions of options.
func withUIDPrecondition(ns *tenancy.Namespace, options *metav1.DeleteOptions) (*metav1.DeleteOptions, error) {
	options = options.DeepCopy()
	if options.Preconditions == nil {
		options.Preconditions = &metav1.Preconditions{}
	}
	want := options.Preconditions
	conflict := func(field string, want, got any) error {
		//lint:ignore ST1005 the text is Kubernetes'
		mismatch := fmt.Errorf("Precondition failed: %s in precondition: %v, %s in object meta: %v", field, want, field, got)
		return apierrors.NewConflict(tenancy.Resource("namespaces"), ns.Name, mismatch)
	}
	if want.UID != nil && *want.UID != ns.UID {
		return nil, conflict("UID", *want.UID, ns.UID)
	}
	if want.ResourceVersion != nil && *want.ResourceVersion != ns.ResourceVersion {
		return nil, conflict("ResourceVersion", *want.ResourceVersion, ns.ResourceVersion)
	}
	want.UID = new(ns.UID)
	return options, nil
}

// errTerminating means that the Namespace was already Terminating.
var errTerminating = errors.New("the namespace is terminating")

// markTerminating makes the Namespace Terminating in one write. Unlike the
// deletion of other kinds it never has a grace period. A Namespace that another
// request has made Terminating before is returned as it is, with false.
func (r *REST) markTerminating(ctx context.Context, name string, deleteValidation rest.ValidateObjectFunc, options *metav1.DeleteOptions) (_ *tenancy.Namespace, marked bool, err error) {
	key, err := r.store.KeyFunc(ctx, name)
	if err != nil {
		return nil, false, err
	}
	var terminating *tenancy.Namespace
	preconditions := &storage.Preconditions{UID: options.Preconditions.UID, ResourceVersion: options.Preconditions.ResourceVersion}
	mark := func(existing runtime.Object) (runtime.Object, error) {
		ns := existing.(*tenancy.Namespace)
		// Check it in the write that marks the Namespace, so that it cannot change
		// in between.
		if !ns.DeletionTimestamp.IsZero() {
			terminating = ns.DeepCopy()
			return nil, errTerminating
		}
		if ns.Spec.DeletionProtection {
			return nil, newProtected(name)
		}
		if err := deleteValidation(ctx, ns); err != nil {
			return nil, err
		}
		ns.DeletionTimestamp = new(metav1.Now())
		ns.Status.Phase = tenancy.NamespaceTerminating
		ns.Finalizers = finalizersFor(options, ns.Finalizers)
		return ns, nil
	}

	out := &tenancy.Namespace{}
	err = r.store.Storage.GuaranteedUpdate(ctx, key, out, false, preconditions, storage.SimpleUpdate(mark), dryrun.IsDryRun(options.DryRun), nil)
	switch {
	case err == nil:
		return out, true, nil
	case errors.Is(err, errTerminating):
		return terminating, false, nil
	}
	err = storageerr.InterpretGetError(err, tenancy.Resource("namespaces"), name)
	err = storageerr.InterpretUpdateError(err, tenancy.Resource("namespaces"), name)
	if _, ok := err.(apierrors.APIStatus); !ok {
		err = apierrors.NewInternalError(err)
	}
	return nil, false, err
}

// removeUnmarked removes a Namespace that nothing holds without marking it before,
// for which etcd has no space: full is the error. It returns full for a Namespace
// that a finalizer or content holds.
func (r *REST) removeUnmarked(ctx context.Context, name string, deleteValidation rest.ValidateObjectFunc, options *metav1.DeleteOptions, full error) (runtime.Object, bool, error) {
	if len(finalizersFor(options, nil)) > 0 {
		return nil, false, full // the store would mark it, without the phase
	}
	validate := func(ctx context.Context, obj runtime.Object) error {
		ns := obj.(*tenancy.Namespace)
		switch {
		case ns.Spec.DeletionProtection && ns.DeletionTimestamp.IsZero():
			return newProtected(name)
		case len(ns.Spec.Finalizers) != 0 || len(ns.Finalizers) != 0:
			return full
		}
		return deleteValidation(ctx, obj)
	}
	obj, removed, err := r.store.Delete(ctx, name, validate, options)
	switch {
	case apierrors.HasStatusCause(err, v1.NamespaceNotEmptyCause):
		return nil, false, full
	case err != nil:
		return nil, false, err
	}
	ns := obj.(*tenancy.Namespace) // as if it had been marked
	ns.DeletionTimestamp = new(metav1.Now())
	ns.Status.Phase = tenancy.NamespaceTerminating
	return ns, removed, nil
}

// newProtected returns the error for a Namespace that is protected, which says
// how to allow its deletion.
func newProtected(name string) error {
	message := fmt.Sprintf(`it is protected from deletion by spec.deletionProtection; to allow deletion: kubectl patch namespaces.%s %s --type=merge -p '{"spec":{"deletionProtection":false}}'`, tenancy.GroupName, name)
	err := apierrors.NewConflict(tenancy.Resource("namespaces"), name, errors.New(message))
	err.ErrStatus.Details.Causes = append(err.ErrStatus.Details.Causes, metav1.StatusCause{
		Type:    v1.NamespaceProtectedCause,
		Message: message,
		Field:   "spec.deletionProtection",
	})
	return err
}

// finalizersFor returns the metadata finalizers that the propagation policy
// asks for, in their order, and new ones last. Without a
// policy they stay as they are.
func finalizersFor(options *metav1.DeleteOptions, current []string) []string {
	var orphan, foreground bool
	//lint:ignore SA1019 deprecated, but clients send it
	orphanDependents := options.OrphanDependents
	switch {
	case orphanDependents != nil:
		orphan = *orphanDependents
		foreground = !orphan
	case options.PropagationPolicy != nil:
		orphan = *options.PropagationPolicy == metav1.DeletePropagationOrphan
		foreground = *options.PropagationPolicy == metav1.DeletePropagationForeground
	default:
		return current
	}
	finalizers := setMember(current, metav1.FinalizerOrphanDependents, orphan)
	return setMember(finalizers, metav1.FinalizerDeleteDependents, foreground)
}

func setMember(list []string, member string, want bool) []string {
	switch has := slices.Contains(list, member); {
	case want && !has:
		return append(slices.Clip(list), member)
	case !want && has:
		return slices.DeleteFunc(slices.Clone(list), func(s string) bool { return s == member })
	}
	return list
}
