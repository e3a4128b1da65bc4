// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

// Package namespacepurge serves namespacepurges. Creating a NamespacePurge
// deletes the content of a Terminating Namespace; nothing is stored.
//
// There are two kinds of purge. The namespace controller creates the ordinary
// one, which deletes objects as DELETE would: an object with a finalizer, or a
// Pod that is still shutting down, is marked and stays. With spec.force such
// objects are removed as well, which requires the verb "force".
//
// Both are bound to the UID of the Namespace, and both ask admission about the
// NamespacePurge and then about the DELETE of each object. A forced purge
// bypasses finalizers without an UPDATE that admission could see, so a policy
// that controls the removal of finalizers has to cover namespacepurges.
//
// With spec.finalize, a purge also removes the Namespace if nothing else holds it,
// as a PUT to namespaces/finalize would.
package namespacepurge

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/endpoints/handlers/responsewriters"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/util/dryrun"
	"k8s.io/klog/v2"

	"github.com/borough-io/borough/pkg/apis/tenancy"
	v1 "github.com/borough-io/borough/pkg/apis/tenancy/v1"
	"github.com/borough-io/borough/pkg/apis/tenancy/validation"
	"github.com/borough-io/borough/pkg/registry/deletecollection"
	"github.com/borough-io/borough/pkg/requestlimits"
	"github.com/borough-io/borough/pkg/storage/unreadable"
)

// Content is a resource whose objects are part of the content of Namespaces.
type Content struct {
	deletecollection.Deleter
	Resource schema.GroupVersionResource
	Kind     schema.GroupVersionKind
	// Stage decides whether an ordinary purge, which follows the order of the content,
	// skips the objects: if an object of earlier content with a lower stage is left.
	Stage int
}

// Finalizer removes empty Namespaces.
type Finalizer interface {
	// FinalizeEmpty removes the finalizer kubernetes from a Terminating Namespace
	// with the UID, and with it the Namespace, and reports whether it did. It
	// changes nothing if content or another finalizer holds the Namespace.
	FinalizeEmpty(ctx context.Context, name string, uid types.UID, validate rest.ValidateObjectUpdateFunc, dryRun bool) (finalized bool, err error)
}

// Config is what a REST needs.
type Config struct {
	Scheme *runtime.Scheme
	// Namespaces reads Namespaces. Its Get has to be a live read if the options
	// have no resourceVersion, as the Get of a store is.
	Namespaces rest.Getter
	// Finalizer removes the Namespace if spec.finalize is set.
	Finalizer Finalizer
	// Authorizer decides who may force and finalize.
	Authorizer authorizer.UnconditionalAuthorizer
	// Admission is asked about the DELETE of each object, and about the UPDATE of
	// namespaces/finalize. Only validating admission is.
	Admission admission.Interface
	// Content is purged in this order.
	Content []Content
	// Unreadable are the objects that lists do not have.
	Unreadable *unreadable.Objects
}

// REST serves namespacepurges.
type REST struct {
	Config
	// deletes is asked about the DELETE of each object.
	deletes bothPhases
	objects admission.ObjectInterfaces
}

var (
	_ rest.Creater              = &REST{}
	_ rest.Scoper               = &REST{}
	_ rest.SingularNameProvider = &REST{}
)

// NewREST returns a REST.
func NewREST(config Config) *REST {
	deletes := newDeleteAdmission(config.Admission)
	config.Admission = admission.WithAudit(config.Admission)
	return &REST{Config: config, deletes: deletes, objects: admission.NewObjectInterfacesFromScheme(config.Scheme)}
}

// New returns an empty NamespacePurge.
func (r *REST) New() runtime.Object { return &tenancy.NamespacePurge{} }

// Destroy does nothing, since nothing is stored.
func (r *REST) Destroy() {}

// NamespaceScoped returns true.
func (r *REST) NamespaceScoped() bool { return true }

// GetSingularName returns the singular name of the resource.
func (r *REST) GetSingularName() string { return "namespacepurge" }

// Create purges the Namespace and returns the NamespacePurge with its status. In
// a dry run nothing is deleted.
//
// It returns NotFound if the Namespace does not exist, Conflict if it has
// another UID or is not Terminating, and Forbidden if the user may not force or
// finalize. If admission refuses the DELETE of an object, it returns that error
// after it has tried the other objects; what it has deleted by then is not
// restored.
func (r *REST) Create(ctx context.Context, obj runtime.Object, createValidation rest.ValidateObjectFunc, options *metav1.CreateOptions) (runtime.Object, error) {
	purge, ok := obj.(*tenancy.NamespacePurge)
	if !ok {
		return nil, apierrors.NewInternalError(fmt.Errorf("create a namespace purge: got %T", obj))
	}
	purge.ManagedFields = nil // they mean nothing on an object that is not stored
	purge.Status = tenancy.NamespacePurgeStatus{}
	if purge.Name == "" {
		purge.Name = purge.Namespace
	}
	// After mutating admission, which could have set spec.force.
	if purge.Spec.Force {
		if err := r.authorize(ctx, authorizer.AttributesRecord{Verb: v1.ForceVerb, Namespace: purge.Namespace, Resource: "namespacepurges"}); err != nil {
			return nil, err
		}
	}
	if purge.Spec.Finalize {
		// The attributes of a PUT to namespaces/finalize.
		right := authorizer.AttributesRecord{Verb: "update", Namespace: purge.Namespace, Name: purge.Namespace, Resource: "namespaces", Subresource: "finalize"}
		if err := r.authorize(ctx, right); err != nil {
			return nil, err
		}
	}
	if errs := validation.ValidateNamespacePurge(purge); len(errs) > 0 {
		return nil, apierrors.NewInvalid(tenancy.Kind("NamespacePurge"), purge.Name, requestlimits.LimitErrors(errs))
	}
	if err := createValidation(ctx, purge.DeepCopy()); err != nil {
		return nil, err
	}

	report := newReport(purge.Spec, dryrun.IsDryRun(options.DryRun))
	defer report.record(ctx)
	if err := r.run(ctx, report, options); err != nil {
		return nil, err
	}
	report.warn(ctx)
	purge.Status.Purged, purge.Status.Finalized = report.status(), report.finalized
	return purge, nil
}

// authorize returns Forbidden unless the user of the request has the right to a
// resource of our group.
func (r *REST) authorize(ctx context.Context, attributes authorizer.AttributesRecord) error {
	user, ok := request.UserFrom(ctx)
	if !ok {
		return apierrors.NewInternalError(errors.New("authorize a purge: the request has no user"))
	}
	attributes.User, attributes.ResourceRequest = user, true
	attributes.APIGroup, attributes.APIVersion = v1.SchemeGroupVersion.Group, v1.SchemeGroupVersion.Version
	decision, reason, err := r.Authorizer.Authorize(ctx, attributes)
	switch {
	case decision == authorizer.DecisionAllow:
		return nil
	case err != nil:
		return apierrors.NewInternalError(fmt.Errorf("authorize a purge: %w", err))
	}
	return responsewriters.ForbiddenStatusError(attributes, reason)
}

// run purges the Namespace, and finalizes it if it is to be.
func (r *REST) run(ctx context.Context, report *report, options *metav1.CreateOptions) error {
	if report.finalize && !report.force && !report.dryRun {
		if done, err := r.purgeCached(ctx, report, options); done || err != nil {
			return err
		}
	}
	if err := r.purge(ctx, report, options); err != nil {
		return err
	}
	if _, held := report.total(); report.finalize && (held == 0 || report.force) {
		r.finalize(ctx, report, options)
	}
	return nil
}

// finalize finalizes the Namespace if nothing holds it, and reports whether it did. A
// failure fails no purge: the Namespace is then finalized by a request of its own,
// which reports the error.
func (r *REST) finalize(ctx context.Context, report *report, options *metav1.CreateOptions) bool {
	name := request.NamespaceValue(ctx)
	finalized, err := r.Finalizer.FinalizeEmpty(ctx, name, report.namespaceUID, r.validateFinalize(ctx, name, options), report.dryRun)
	if err != nil {
		klog.FromContext(ctx).V(2).Info("The purge cannot finalize the namespace", "namespace", name, "err", err)
	}
	report.finalized = finalized
	return finalized
}

// purge deletes the content, resource by resource. What is left of a resource stops only
// those of higher stages. That admission refused to delete some of it is returned at the
// end, or that some of it cannot be read: the status counts only what can.
func (r *REST) purge(ctx context.Context, report *report, options *metav1.CreateOptions) error {
	var refused error
	var unread *Content       // the first of which an object cannot be read
	incomplete := math.MaxInt // the lowest stage of which something is left
	for i := range r.Content {
		content := &r.Content[i]
		if content.Stage > incomplete {
			report.skip(content.Resource.GroupResource())
			continue
		}
		deleter := r.newDeleter(ctx, i, report, options)
		err := deleter.run(ctx)
		if err != nil && !deletecollection.IsRefused(err) {
			return err
		}
		if err != nil || deleter.result.purged.Held > 0 && !report.force {
			incomplete = min(incomplete, content.Stage)
		}
		if r.hasUnreadable(ctx, content) && !report.force {
			incomplete = min(incomplete, content.Stage)
			unread = cmp.Or(unread, content)
		}
		if refused == nil {
			refused = err
		}
	}
	if refused == nil && unread != nil {
		return r.newUnreadable(ctx, unread)
	}
	return refused
}

// hasUnreadable reports whether the Namespace has objects of the resource that cannot be read.
// Nothing is known of them: a Pod may run.
func (r *REST) hasUnreadable(ctx context.Context, content *Content) bool {
	return r.Unreadable.AnyIn(content.Resource.GroupResource(), request.NamespaceValue(ctx))
}

// newUnreadable returns the error of objects that hasUnreadable reports.
func (r *REST) newUnreadable(ctx context.Context, content *Content) error {
	const most = 3
	resource, namespace := content.Resource.GroupResource(), request.NamespaceValue(ctx)
	names := r.Unreadable.In(resource, namespace)
	more := ""
	if n := len(names) - most; n > 0 {
		names, more = names[:most], fmt.Sprintf(" and %d more", n)
	}
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusInternalServerError, Reason: metav1.StatusReasonStoreReadError,
		Details: &metav1.StatusDetails{Group: resource.Group, Kind: resource.Resource},
		Message: fmt.Sprintf("%s %q%s in the namespace %q cannot be read from storage, so they and what is purged after them stay: see docs/operations.md, An object that cannot be read",
			resource, names, more, namespace),
	}}
}

// newDeleter returns what deletes the objects of the i-th resource.
func (r *REST) newDeleter(ctx context.Context, i int, report *report, options *metav1.CreateOptions) *deleter {
	content := &r.Content[i]
	return &deleter{
		Content:      content,
		namespaces:   r.Namespaces,
		namespaceUID: report.namespaceUID,
		force:        report.force,
		first:        i == 0,
		dryRun:       options.DryRun,
		validate:     r.validateDelete(ctx, content, options, report.force),
		report:       report,
	}
}
