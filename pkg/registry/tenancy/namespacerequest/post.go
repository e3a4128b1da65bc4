// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package namespacerequest

import (
	"cmp"
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/endpoints/handlers/fieldmanager"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/util/dryrun"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/borough-io/borough/pkg/apis/tenancy"
)

// defaultManager is the field manager if the client is not known.
const defaultManager = "borough-apiserver"

// fieldManager returns the field manager of a request.
func fieldManager(options *metav1.CreateOptions, request *tenancy.NamespaceRequest) string {
	// The library has added the client to the request, if it has any fields.
	var client string
	if fields := request.ManagedFields; len(fields) > 0 {
		client = fields[len(fields)-1].Manager
	}
	return cmp.Or(options.FieldManager, client, defaultManager)
}

// post is how objects are created.
type post struct {
	options *metav1.CreateOptions
	manager string
}

// poster creates objects of one kind as the library does in a POST.
type poster struct {
	storage   rest.Creater
	kind      schema.GroupVersionKind
	resource  schema.GroupVersionResource
	scheme    *runtime.Scheme
	admission admission.Interface
	objects   admission.ObjectInterfaces
	fields    *managedfields.FieldManager
}

func newPoster(config Config, storage rest.Creater, kind schema.GroupVersionKind, resource schema.GroupVersionResource, reset map[fieldpath.APIVersion]*fieldpath.Set) (*poster, error) {
	internal := schema.GroupVersion{Group: kind.Group, Version: runtime.APIVersionInternal}
	fields, err := managedfields.NewDefaultFieldManager(config.Types, runtime.UnsafeObjectConvertor(config.Scheme), config.Scheme, config.Scheme,
		kind, internal, "", fieldpath.NewExcludeFilterSetMap(reset))
	if err != nil {
		return nil, fmt.Errorf("make the field manager of %s: %w", kind.Kind, err)
	}
	return &poster{
		storage: storage, kind: kind, resource: resource,
		scheme:    config.Scheme,
		admission: fieldmanager.NewManagedFieldsValidatingAdmissionController(admission.WithAudit(config.Admission)),
		objects:   admission.NewObjectInterfacesFromScheme(config.Scheme),
		fields:    fields,
	}, nil
}

// create creates an object. It calls named when the name is final, and the object
// valid.
func (p *poster) create(ctx context.Context, obj runtime.Object, post post, named func(name string)) (runtime.Object, error) {
	object, err := meta.Accessor(obj)
	if err != nil {
		return nil, err
	}
	name, namespace := object.GetName(), object.GetNamespace()
	// The store names the resource of the request in its errors.
	ctx = request.WithRequestInfo(request.WithNamespace(ctx, namespace), &request.RequestInfo{
		IsResourceRequest: true, Verb: "create", APIPrefix: "apis", APIGroup: p.resource.Group, APIVersion: p.resource.Version,
		Resource: p.resource.Resource, Namespace: namespace, Name: name,
	})
	live, err := p.scheme.New(p.kind)
	if err != nil {
		return nil, fmt.Errorf("make an empty %s: %w", p.kind.Kind, err)
	}
	obj = p.fields.UpdateNoErrors(live, obj, post.manager)
	user, _ := request.UserFrom(ctx)
	attributes := admission.NewAttributesRecord(obj, nil, p.kind, namespace, name, p.resource, "", admission.Create, post.options, dryrun.IsDryRun(post.options.DryRun), user)
	if mutating, ok := p.admission.(admission.MutationInterface); ok && mutating.Handles(admission.Create) {
		if err := mutating.Admit(ctx, attributes, p.objects); err != nil {
			return nil, err
		}
	}
	validate := rest.AdmissionToValidateObjectFunc(p.admission, attributes, p.objects)
	return p.storage.Create(ctx, obj, func(ctx context.Context, obj runtime.Object) error {
		final, err := meta.Accessor(obj)
		if err != nil {
			return err
		}
		named(final.GetName())
		return validate(ctx, obj)
	}, post.options)
}
