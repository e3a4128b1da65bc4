// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

// Package namespacepurge serves namespacepurges: a resource that can be created,
// of which nothing is stored. To create one removes what is left in a
// Terminating Namespace, whatever it waits for.
//
// It is a right of its own, not a way around the rules: admission is asked about
// the NamespacePurge, and then about the DELETE of each object. Only the
// finalizers are passed over, without an UPDATE that admission would see. A rule
// about who may take a finalizer away has to mind namespacepurges too.
package namespacepurge

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/util/dryrun"
	"k8s.io/utils/ptr"

	"github.com/borough-io/borough/pkg/apis/tenancy"
	"github.com/borough-io/borough/pkg/apis/tenancy/validation"
	"github.com/borough-io/borough/pkg/registry/collection"
)

// Clearer removes the objects of one resource. Its Clear is that of
// collection.Deleter.
type Clearer interface {
	Clear(ctx context.Context, deleteValidation rest.ValidateObjectFunc, options collection.ClearOptions) error
}

// Content is a resource whose objects live in Namespaces.
type Content struct {
	Clearer
	Resource schema.GroupVersionResource
	Kind     schema.GroupVersionKind
}

// REST serves namespacepurges.
type REST struct {
	content   []Content
	admission admission.Interface
	objects   admission.ObjectInterfaces
}

var (
	_ rest.Creater              = &REST{}
	_ rest.Scoper               = &REST{}
	_ rest.SingularNameProvider = &REST{}
)

// NewREST returns the REST that purges the content, in this order. Of each
// object it asks the server's admission, whose plugins know the types of the
// scheme.
func NewREST(scheme *runtime.Scheme, admit admission.Interface, content []Content) *REST {
	return &REST{
		content:   content,
		admission: admission.WithAudit(admit),
		objects:   admission.NewObjectInterfacesFromScheme(scheme),
	}
}

// New returns an empty NamespacePurge.
func (r *REST) New() runtime.Object { return &tenancy.NamespacePurge{} }

// Destroy does nothing: nothing is stored.
func (r *REST) Destroy() {}

// NamespaceScoped is true.
func (r *REST) NamespaceScoped() bool { return true }

// GetSingularName returns the name that kubectl prints for one of them.
func (r *REST) GetSingularName() string { return "namespacepurge" }

// Create removes all that is in the Namespace, or in a dry run nothing, and
// returns the NamespacePurge with what that is in its status.
//
// It returns NotFound if there is no such Namespace, and Conflict if it has
// another UID or is not being deleted. Where admission refuses the DELETE of an
// object, it returns that error; what it has removed by then is gone.
func (r *REST) Create(ctx context.Context, obj runtime.Object, createValidation rest.ValidateObjectFunc, options *metav1.CreateOptions) (runtime.Object, error) {
	purge, ok := obj.(*tenancy.NamespacePurge)
	if !ok {
		return nil, apierrors.NewInternalError(fmt.Errorf("create a namespace purge: got %T", obj))
	}
	purge.ManagedFields = nil // nobody manages what is not stored
	purge.Status = tenancy.NamespacePurgeStatus{}
	if purge.Name == "" {
		purge.Name = purge.Namespace
	}
	if errs := validation.ValidateNamespacePurge(purge); len(errs) > 0 {
		return nil, apierrors.NewInvalid(tenancy.Kind("NamespacePurge"), purge.Name, errs)
	}
	if err := createValidation(ctx, purge.DeepCopy()); err != nil {
		return nil, err
	}

	report := newReport(purge.Spec.NamespaceUID, dryrun.IsDryRun(options.DryRun))
	defer report.tell(ctx)
	for i := range r.content {
		content := &r.content[i]
		err := content.Clear(ctx, r.validateDelete(ctx, content, options), collection.ClearOptions{
			NamespaceUID: purge.Spec.NamespaceUID,
			DryRun:       report.dryRun,
			Removed:      report.of(content.Resource.GroupResource()),
		})
		if err != nil {
			return nil, err
		}
	}
	report.warn(ctx)
	purge.Status.Purged = report.purged()
	return purge, nil
}

// validateDelete returns what asks admission whether an object may be deleted,
// as it is asked about the DELETE of a single object: its errors name it.
func (r *REST) validateDelete(ctx context.Context, content *Content, options *metav1.CreateOptions) rest.ValidateObjectFunc {
	deleteOptions := &metav1.DeleteOptions{GracePeriodSeconds: ptr.To[int64](0), DryRun: options.DryRun}
	deleteOptions.SetGroupVersionKind(metav1.SchemeGroupVersion.WithKind("DeleteOptions"))
	user, _ := request.UserFrom(ctx)
	return func(ctx context.Context, obj runtime.Object) error {
		listed, err := meta.Accessor(obj)
		if err != nil {
			return apierrors.NewInternalError(err)
		}
		attributes := admission.NewAttributesRecord(nil, nil, content.Kind, listed.GetNamespace(), listed.GetName(), content.Resource, "",
			admission.Delete, deleteOptions, dryrun.IsDryRun(options.DryRun), user)
		return rest.AdmissionToValidateObjectDeleteFunc(r.admission, attributes, r.objects)(ctx, obj)
	}
}
