// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package namespacepurge

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metainternalversion "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/storage"
	storageerr "k8s.io/apiserver/pkg/storage/errors"
	"k8s.io/apiserver/pkg/util/dryrun"
	"k8s.io/utils/ptr"

	"github.com/borough-io/borough/pkg/apis/tenancy"
	v1 "github.com/borough-io/borough/pkg/apis/tenancy/v1"
	"github.com/borough-io/borough/pkg/storage/charge"
)

// remover is a storage that can remove an object without reading it.
type remover interface {
	// Remove removes the object with the key if it still has the resourceVersion,
	// and reports whether it did.
	Remove(ctx context.Context, key string, resourceVersion uint64) (removed bool, err error)
}

// deleter deletes the objects of one resource for one purge.
type deleter struct {
	*Content
	namespaces   rest.Getter
	namespaceUID types.UID
	force        bool
	first        bool // of the resources of the purge
	dryRun       []string
	validate     rest.ValidateObjectFunc
	report       *report
	result       *result // set when the deletion begins
}

// begin adds the resource to the report.
func (d *deleter) begin() { d.result = d.report.result(d.Resource.GroupResource()) }

// run deletes all objects of the resource in the Namespace of the request.
func (d *deleter) run(ctx context.Context) error {
	d.begin()
	check := func(_ runtime.Object, page []runtime.Object) error {
		// The check follows the list. The objects that were listed then belong to
		// this Namespace, or to an earlier one and are gone; deletes carry their
		// UIDs.
		_, err := d.checkNamespace(ctx)
		if len(page) == 0 && !d.first && apierrors.IsNotFound(err) {
			return nil // the purge has removed the last object, and another client the Namespace
		}
		return err
	}
	remove := d.delete
	if d.force {
		remove = d.forceDelete
	}
	// The quotas of a Namespace that is being deleted do not matter any more.
	return d.EachObject(charge.Exempt(ctx), &metainternalversion.ListOptions{}, check, remove)
}

// checkNamespace reads the Namespace of the request from etcd. It returns an error unless
// it has the UID and is Terminating.
func (d *deleter) checkNamespace(ctx context.Context) (runtime.Object, error) {
	name := request.NamespaceValue(ctx)
	obj, err := d.namespaces.Get(ctx, name, &metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		// The store's error names the resource of the request instead.
		return nil, apierrors.NewNotFound(tenancy.Resource("namespaces"), name)
	}
	if err != nil {
		return nil, err
	}
	ns, err := meta.Accessor(obj)
	if err != nil {
		return nil, apierrors.NewInternalError(fmt.Errorf("read namespace %q: %w", name, err))
	}
	switch {
	case ns.GetUID() != d.namespaceUID:
		return nil, apierrors.NewConflict(tenancy.Resource("namespaces"), name,
			fmt.Errorf("the purge is for the namespace with UID %s, but the UID of this one is %s; it may have been deleted and created again", d.namespaceUID, ns.GetUID()))
	case ns.GetDeletionTimestamp() == nil:
		return nil, apierrors.NewConflict(tenancy.Resource("namespaces"), name,
			errors.New("only a namespace that is being deleted can be purged; delete it first"))
	}
	return obj, nil
}

// delete deletes an object as a DELETE would.
func (d *deleter) delete(ctx context.Context, obj runtime.Object) error {
	removed, err := d.removeUnread(ctx, obj)
	if err != nil {
		return err
	}
	if removed {
		d.result.removed()
		return nil
	}
	// All content is deleted, so the garbage collector need not keep or follow
	// dependents.
	options := &metav1.DeleteOptions{PropagationPolicy: new(metav1.DeletePropagationBackground), DryRun: d.dryRun}
	waiting, removed, err := d.Delete(ctx, obj, d.validate, options)
	switch {
	case err != nil:
		return err
	case removed:
		d.result.removed()
	case waiting != nil:
		held, err := meta.Accessor(waiting)
		if err != nil {
			return apierrors.NewInternalError(err)
		}
		d.result.held(held)
	}
	return nil
}

// removeUnread removes an object that has nothing to wait for and has not changed
// since it was listed, and reports whether it did. It costs one write. The
// store's Delete reads the object first, and marks a Pod without a node in a
// separate write, which no client needs in a Terminating Namespace.
func (d *deleter) removeUnread(ctx context.Context, obj runtime.Object) (bool, error) {
	listed, err := meta.Accessor(obj)
	if err != nil {
		return false, apierrors.NewInternalError(err)
	}
	remover, ok := d.Store.Storage.Storage.(remover)
	if !ok || len(d.dryRun) > 0 || listed.GetDeletionTimestamp() != nil || d.isHeld(ctx, obj, listed) {
		return false, nil
	}
	key, err := d.Store.KeyFunc(ctx, listed.GetName())
	if err != nil {
		return false, err
	}
	revision, err := d.Store.Storage.Versioner().ObjectResourceVersion(obj)
	if err != nil {
		return false, apierrors.NewInternalError(err)
	}
	if err := d.validate(ctx, obj); err != nil {
		return false, err
	}
	return remover.Remove(ctx, key, revision)
}

// forceDelete removes an object regardless of finalizers and grace periods, unless it
// no longer exists or another object has its name. It is one write that depends on the UID
// alone: a finalizer that is added at the same moment does not keep the object.
func (d *deleter) forceDelete(ctx context.Context, obj runtime.Object) error {
	listed, err := meta.Accessor(obj)
	if err != nil {
		return apierrors.NewInternalError(err)
	}
	key, err := d.Store.KeyFunc(ctx, listed.GetName())
	if err != nil {
		return err
	}
	out := d.Store.NewFunc()
	preconditions := &storage.Preconditions{UID: new(listed.GetUID())}
	err = d.Store.Storage.Delete(ctx, key, out, preconditions, storage.ValidateObjectFunc(d.validate), len(d.dryRun) > 0, nil, storage.DeleteOptions{})
	switch {
	case storage.IsNotFound(err), storage.IsInvalidObj(err): // gone, or another UID
		return nil
	case err != nil:
		return storageerr.InterpretDeleteError(err, d.Store.DefaultQualifiedResource, listed.GetName())
	}
	last, err := meta.Accessor(out)
	if err != nil {
		return apierrors.NewInternalError(err)
	}
	d.result.removed()
	if d.isHeld(ctx, out, last) {
		d.result.held(last)
	}
	return nil
}

// isHeld reports whether a delete would have to wait for a finalizer or a grace
// period.
func (d *deleter) isHeld(ctx context.Context, obj runtime.Object, object metav1.Object) bool {
	if len(object.GetFinalizers()) > 0 {
		return true
	}
	options := &metav1.DeleteOptions{}
	strategy, ok := d.Store.DeleteStrategy.(rest.RESTGracefulDeleteStrategy)
	return ok && strategy.CheckGracefulDelete(ctx, obj, options) && ptr.Deref(options.GracePeriodSeconds, 1) > 0
}

// validateFinalize returns a function that asks admission about the UPDATE of
// namespaces/finalize.
func (r *REST) validateFinalize(ctx context.Context, name string, options *metav1.CreateOptions) rest.ValidateObjectUpdateFunc {
	updateOptions := &metav1.UpdateOptions{DryRun: options.DryRun}
	updateOptions.SetGroupVersionKind(metav1.SchemeGroupVersion.WithKind("UpdateOptions"))
	user, _ := request.UserFrom(ctx)
	return func(ctx context.Context, obj, old runtime.Object) error {
		attributes := admission.NewAttributesRecord(nil, nil, v1.SchemeGroupVersion.WithKind("Namespace"), "", name, v1.SchemeGroupVersion.WithResource("namespaces"), "finalize",
			admission.Update, updateOptions, dryrun.IsDryRun(options.DryRun), user)
		return rest.AdmissionToValidateObjectUpdateFunc(r.Admission, attributes, r.objects)(ctx, obj, old)
	}
}

// validateDelete returns a function that asks admission about the DELETE of an
// object. Its errors name the object.
func (r *REST) validateDelete(ctx context.Context, content *Content, options *metav1.CreateOptions, force bool) rest.ValidateObjectFunc {
	deleteOptions := &metav1.DeleteOptions{DryRun: options.DryRun}
	if force {
		deleteOptions.GracePeriodSeconds = new(int64(0))
	} else {
		deleteOptions.PropagationPolicy = new(metav1.DeletePropagationBackground)
	}
	deleteOptions.SetGroupVersionKind(metav1.SchemeGroupVersion.WithKind("DeleteOptions"))
	user, _ := request.UserFrom(ctx)
	return func(ctx context.Context, obj runtime.Object) error {
		listed, err := meta.Accessor(obj)
		if err != nil {
			return apierrors.NewInternalError(err)
		}
		attributes := admission.NewAttributesRecord(nil, obj, content.Kind, listed.GetNamespace(), listed.GetName(), content.Resource, "",
			admission.Delete, deleteOptions, dryrun.IsDryRun(options.DryRun), user)
		return admitDelete(ctx, r.deletes, attributes, r.objects)
	}
}
