// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

// Package namespace serves Namespaces and their subresources from etcd.
package namespace

import (
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	metainternalversion "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/registry/generic"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/storage"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/borough-io/borough/pkg/apis/coregroup"
	"github.com/borough-io/borough/pkg/apis/tenancy"
	"github.com/borough-io/borough/pkg/apis/tenancy/validation"
	"github.com/borough-io/borough/pkg/registry/standard"
)

// base is what the strategies of the resource and its subresources share.
type base struct{ standard.Strategy }

func (base) NamespaceScoped() bool                    { return false }
func (base) AllowCreateOnUpdate(context.Context) bool { return false }

// maxTerminationFinalizers is how many finalizers of a Namespace its
// status.termination names at most.
const maxTerminationFinalizers = 20

// UpdateTermination writes the remaining finalizers of the Namespace into
// status.termination. It has to be called in the write that changes them, so that the
// status never has a finalizer that was removed.
func UpdateTermination(ns *tenancy.Namespace) {
	if ns.Status.Termination == nil {
		return
	}
	termination := *ns.Status.Termination // the old object may share it
	termination.SpecFinalizers = slices.Clone(ns.Spec.Finalizers[:min(len(ns.Spec.Finalizers), maxTerminationFinalizers)])
	termination.MetadataFinalizers = slices.Clone(ns.Finalizers[:min(len(ns.Finalizers), maxTerminationFinalizers)])
	ns.Status.Termination = &termination
}

// Canonicalize sets the label that names the Namespace once more.
//
// Defaulting sets it when a Namespace is decoded, and so on every get, but
// before generateName has chosen the name; validation runs after that and must
// not change the object. This hook is the first to see the final name.
func (base) Canonicalize(obj runtime.Object) {
	ns := obj.(*tenancy.Namespace)
	if ns.Labels == nil {
		ns.Labels = map[string]string{}
	}
	ns.Labels[tenancy.LabelMetadataName] = ns.Name
}

// Strategy holds the rules for Namespaces themselves.
type Strategy struct{ base }

// StatusStrategy holds the rules for namespaces/status.
type StatusStrategy struct{ base }

// FinalizeStrategy holds the rules for namespaces/finalize.
type FinalizeStrategy struct{ base }

var (
	_ rest.RESTCreateStrategy  = Strategy{}
	_ rest.RESTUpdateStrategy  = Strategy{}
	_ rest.RESTUpdateStrategy  = StatusStrategy{}
	_ rest.RESTUpdateStrategy  = FinalizeStrategy{}
	_ rest.ResetFieldsStrategy = Strategy{}
)

// PrepareForCreate makes the Namespace Active and gives it the finalizer of the
// namespace controller. That can't be a default: a default would put back, on
// every read, what finalize has taken away.
func (Strategy) PrepareForCreate(ctx context.Context, obj runtime.Object) {
	ns := obj.(*tenancy.Namespace)
	setRequester(ctx, ns)
	// A client may have sent managed fields that it got through the core group.
	ns.ManagedFields = coregroup.OwnManagedFields(ns.ManagedFields)
	ns.Status = tenancy.NamespaceStatus{Phase: tenancy.NamespaceActive}
	if !slices.Contains(ns.Spec.Finalizers, tenancy.FinalizerKubernetes) {
		ns.Spec.Finalizers = append(ns.Spec.Finalizers, tenancy.FinalizerKubernetes)
	}
}

// Validate checks a new Namespace.
func (Strategy) Validate(ctx context.Context, obj runtime.Object) field.ErrorList {
	ns := obj.(*tenancy.Namespace)
	if isRequested(ctx) {
		return validation.ValidateNamespace(ns)
	}
	return append(validation.ValidateNamespace(ns), validation.ValidateNotRequested(&ns.ObjectMeta)...)
}

// PrepareForUpdate keeps what only the subresources may change.
func (s Strategy) PrepareForUpdate(ctx context.Context, obj, old runtime.Object) {
	newNS, oldNS := obj.(*tenancy.Namespace), old.(*tenancy.Namespace)
	if coregroup.Requested(ctx) { // core/v1 does not have the field
		newNS.Spec.DeletionProtection = oldNS.Spec.DeletionProtection
	}
	s.keepRequester(newNS, oldNS)
	newNS.Spec.Finalizers = oldNS.Spec.Finalizers
	newNS.Status = oldNS.Status
	UpdateTermination(newNS)
	keepManagers(ctx, newNS, oldNS)
}

// keepManagers keeps, after an update in the core group, who manages the fields that it does
// not have.
func keepManagers(ctx context.Context, newNS, oldNS *tenancy.Namespace) {
	if !coregroup.Requested(ctx) {
		return
	}
	a, b := *newNS, *oldNS
	a.ManagedFields, b.ManagedFields = nil, nil
	newNS.ManagedFields = coregroup.KeepManagers(newNS.ManagedFields, oldNS.ManagedFields, !equality.Semantic.DeepEqual(a, b))
}

// ValidateUpdate checks an update.
func (Strategy) ValidateUpdate(_ context.Context, obj, old runtime.Object) field.ErrorList {
	newNS, oldNS := obj.(*tenancy.Namespace), old.(*tenancy.Namespace)
	return append(validation.ValidateNamespace(newNS), validation.ValidateNamespaceUpdate(newNS, oldNS)...)
}

// GetResetFields returns the fields that PrepareForUpdate resets, so that
// server-side apply assigns no owner to them.
func (Strategy) GetResetFields() map[fieldpath.APIVersion]*fieldpath.Set {
	return coregroup.ResetFields(fieldpath.MakePathOrDie("status"))
}

// PrepareForUpdate keeps the spec.
func (s StatusStrategy) PrepareForUpdate(ctx context.Context, obj, old runtime.Object) {
	ns, oldNS := obj.(*tenancy.Namespace), old.(*tenancy.Namespace)
	if coregroup.Requested(ctx) { // core/v1 does not have the field
		ns.Status.Termination = oldNS.Status.Termination
	}
	s.keepRequester(ns, oldNS)
	ns.Spec = oldNS.Spec
	UpdateTermination(ns)
	keepManagers(ctx, ns, oldNS)
}

// ValidateUpdate checks an update of the status.
func (StatusStrategy) ValidateUpdate(_ context.Context, obj, old runtime.Object) field.ErrorList {
	return validation.ValidateNamespaceStatusUpdate(obj.(*tenancy.Namespace), old.(*tenancy.Namespace))
}

// GetResetFields names what PrepareForUpdate keeps.
func (StatusStrategy) GetResetFields() map[fieldpath.APIVersion]*fieldpath.Set {
	return coregroup.ResetFields(fieldpath.MakePathOrDie("spec"))
}

// PrepareForUpdate keeps the status, and of the spec all but the finalizers.
func (s FinalizeStrategy) PrepareForUpdate(_ context.Context, obj, old runtime.Object) {
	newNS, oldNS := obj.(*tenancy.Namespace), old.(*tenancy.Namespace)
	s.keepRequester(newNS, oldNS)
	newNS.Spec.DeletionProtection = oldNS.Spec.DeletionProtection
	newNS.Status = oldNS.Status
	UpdateTermination(newNS)
}

// ValidateUpdate checks a change of the finalizers.
func (FinalizeStrategy) ValidateUpdate(_ context.Context, obj, old runtime.Object) field.ErrorList {
	return validation.ValidateNamespaceFinalizeUpdate(obj.(*tenancy.Namespace), old.(*tenancy.Namespace))
}

// GetResetFields names what PrepareForUpdate keeps.
func (FinalizeStrategy) GetResetFields() map[fieldpath.APIVersion]*fieldpath.Set {
	return coregroup.ResetFields(fieldpath.MakePathOrDie("status"), fieldpath.MakePathOrDie("spec", "deletionProtection"))
}

// GetAttrs returns what a Namespace can be selected by.
func GetAttrs(obj runtime.Object) (labels.Set, fields.Set, error) {
	ns, ok := obj.(*tenancy.Namespace)
	if !ok {
		return nil, nil, fmt.Errorf("select a namespace: got %T", obj)
	}
	selectable := generic.AddObjectMetaFieldsSet(fields.Set{"status.phase": string(ns.Status.Phase)}, &ns.ObjectMeta, false)
	if user, requested := ns.Annotations[tenancy.RequesterAnnotation]; requested {
		selectable[requesterField] = user
	}
	return ns.Labels, selectable, nil
}

// Match returns the predicate that selects Namespaces by label and field.
func Match(label labels.Selector, field fields.Selector) storage.SelectionPredicate {
	return storage.SelectionPredicate{Label: label, Field: field, GetAttrs: GetAttrs}
}

// Selected returns the predicate that selects what the options of a list select.
func Selected(options *metainternalversion.ListOptions) storage.SelectionPredicate {
	label, field := labels.Everything(), fields.Everything()
	if options.LabelSelector != nil {
		label = options.LabelSelector
	}
	if options.FieldSelector != nil {
		field = options.FieldSelector
	}
	return Match(label, field)
}
