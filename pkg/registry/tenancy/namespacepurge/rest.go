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
package namespacepurge

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/endpoints/handlers/responsewriters"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/util/dryrun"

	"github.com/borough-io/borough/pkg/apis/tenancy"
	"github.com/borough-io/borough/pkg/apis/tenancy/requestlimits"
	v1 "github.com/borough-io/borough/pkg/apis/tenancy/v1"
	"github.com/borough-io/borough/pkg/apis/tenancy/validation"
	"github.com/borough-io/borough/pkg/registry/deletecollection"
)

// Content is a resource whose objects are part of the content of Namespaces.
type Content struct {
	deletecollection.Deleter
	Resource schema.GroupVersionResource
	Kind     schema.GroupVersionKind
	// First means that an ordinary purge continues with the next resource only if
	// no object of this one is left.
	First bool
}

// Config is what a REST needs.
type Config struct {
	Scheme *runtime.Scheme
	// Namespaces reads Namespaces. Its Get has to be a live read if the options
	// have no resourceVersion, as the Get of a store is.
	Namespaces rest.Getter
	// Authorizer decides who may force.
	Authorizer authorizer.Authorizer
	// Admission is asked about the DELETE of each object.
	Admission admission.Interface
	// Content is purged in this order.
	Content []Content
}

// REST serves namespacepurges.
type REST struct {
	Config
	objects admission.ObjectInterfaces
}

var (
	_ rest.Creater              = &REST{}
	_ rest.Scoper               = &REST{}
	_ rest.SingularNameProvider = &REST{}
)

// NewREST returns a REST.
func NewREST(config Config) *REST {
	config.Admission = admission.WithAudit(config.Admission)
	return &REST{Config: config, objects: admission.NewObjectInterfacesFromScheme(config.Scheme)}
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
// another UID or is not Terminating, and Forbidden if the user may not force. If
// admission refuses the DELETE of an object, it returns that error after it has
// tried the other objects; what it has deleted by then is not restored.
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
		if err := r.authorizeForce(ctx, purge.Namespace); err != nil {
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
	if err := r.purge(ctx, report, options); err != nil {
		return nil, err
	}
	report.warn(ctx)
	purge.Status.Purged = report.status()
	return purge, nil
}

// authorizeForce returns Forbidden unless the user has the verb force.
func (r *REST) authorizeForce(ctx context.Context, namespace string) error {
	user, ok := request.UserFrom(ctx)
	if !ok {
		return apierrors.NewInternalError(errors.New("authorize a forced purge: the request has no user"))
	}
	attributes := authorizer.AttributesRecord{
		User: user, Verb: v1.ForceVerb, Namespace: namespace,
		APIGroup: v1.SchemeGroupVersion.Group, APIVersion: v1.SchemeGroupVersion.Version, Resource: "namespacepurges",
		ResourceRequest: true,
	}
	decision, reason, err := r.Authorizer.Authorize(ctx, attributes)
	switch {
	case decision == authorizer.DecisionAllow:
		return nil
	case err != nil:
		return apierrors.NewInternalError(fmt.Errorf("authorize a forced purge: %w", err))
	}
	return responsewriters.ForbiddenStatusError(attributes, reason)
}

// purge deletes the content, resource by resource. A resource whose objects may
// not all be deleted does not stop those that follow, unless it is first; the
// error is returned at the end.
func (r *REST) purge(ctx context.Context, report *report, options *metav1.CreateOptions) error {
	var refused error
	for i := range r.Content {
		content := &r.Content[i]
		deleter := &deleter{
			Content:      content,
			namespaces:   r.Namespaces,
			namespaceUID: report.namespaceUID,
			force:        report.force,
			dryRun:       options.DryRun,
			validate:     r.validateDelete(ctx, content, options, report.force),
			result:       report.add(content.Resource.GroupResource()),
		}
		err := deleter.run(ctx)
		if err != nil && (content.First || !deletecollection.IsRefused(err)) {
			return err
		}
		if refused == nil {
			refused = err
		}
		if content.First && !report.force && deleter.result.anyHeld() {
			break
		}
	}
	return refused
}
