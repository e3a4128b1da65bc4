// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

// Package create creates objects as the library does in a POST: with admission,
// validation and managed fields, but without authorization.
package create

import (
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
	"k8s.io/kube-openapi/pkg/builder3"
	"k8s.io/kube-openapi/pkg/common"
	"k8s.io/kube-openapi/pkg/util"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// ServerManager is the field manager of what the server creates by itself, and of what
// it creates for a client that is not known.
const ServerManager = "borough-apiserver"

// Config is what all Creators of a server share.
type Config struct {
	Scheme *runtime.Scheme
	// Admission is asked about the CREATE of each object.
	Admission admission.Interface
	// Types has the types of the objects, for their managed fields.
	Types managedfields.TypeConverter
}

// NewTypes returns the types of kinds, which are Namespaces and their content, by their
// OpenAPI models.
func NewTypes(config *common.OpenAPIV3Config, kinds ...runtime.Object) (managedfields.TypeConverter, error) {
	var names []string
	for _, kind := range kinds {
		names = append(names, util.GetCanonicalTypeName(kind))
	}
	models, err := builder3.BuildOpenAPIDefinitionsForResources(config, names...)
	if err != nil {
		return nil, fmt.Errorf("build the OpenAPI models of namespaces and their content: %w", err)
	}
	types, err := managedfields.NewTypeConverter(models, false)
	if err != nil {
		return nil, fmt.Errorf("read the OpenAPI models of namespaces and their content: %w", err)
	}
	return types, nil
}

// Options are how an object is created.
type Options struct {
	*metav1.CreateOptions
	// Manager is the field manager.
	Manager string
}

// Creator creates objects of one kind.
type Creator struct {
	storage   rest.Creater
	kind      schema.GroupVersionKind
	resource  schema.GroupVersionResource
	scheme    *runtime.Scheme
	admission admission.Interface
	objects   admission.ObjectInterfaces
	fields    *managedfields.FieldManager
}

// New returns a Creator. The storage must not ask whether the user may create the object.
// If it resets fields, it implements rest.ResetFieldsStrategy.
func New(config Config, storage rest.Creater, kind schema.GroupVersionKind, resource string) (*Creator, error) {
	var reset map[fieldpath.APIVersion]*fieldpath.Set
	if strategy, ok := storage.(rest.ResetFieldsStrategy); ok {
		reset = strategy.GetResetFields()
	}
	internal := schema.GroupVersion{Group: kind.Group, Version: runtime.APIVersionInternal}
	fields, err := managedfields.NewDefaultFieldManager(config.Types, runtime.UnsafeObjectConvertor(config.Scheme), config.Scheme, config.Scheme,
		kind, internal, "", fieldpath.NewExcludeFilterSetMap(reset))
	if err != nil {
		return nil, fmt.Errorf("make the field manager of %s: %w", kind.Kind, err)
	}
	return &Creator{
		storage: storage, kind: kind, resource: kind.GroupVersion().WithResource(resource),
		scheme:    config.Scheme,
		admission: fieldmanager.NewManagedFieldsValidatingAdmissionController(admission.WithAudit(config.Admission)),
		objects:   admission.NewObjectInterfacesFromScheme(config.Scheme),
		fields:    fields,
	}, nil
}

// Create creates an object. It calls named, unless it is nil, when the name is final
// and the object valid.
func (c *Creator) Create(ctx context.Context, obj runtime.Object, options Options, named func(name string)) (runtime.Object, error) {
	object, err := meta.Accessor(obj)
	if err != nil {
		return nil, err
	}
	name, namespace := object.GetName(), object.GetNamespace()
	// The store names the resource of the request in its errors.
	ctx = request.WithRequestInfo(request.WithNamespace(ctx, namespace), &request.RequestInfo{
		IsResourceRequest: true, Verb: "create", APIPrefix: "apis", APIGroup: c.resource.Group, APIVersion: c.resource.Version,
		Resource: c.resource.Resource, Namespace: namespace, Name: name,
	})
	live, err := c.scheme.New(c.kind)
	if err != nil {
		return nil, fmt.Errorf("make an empty %s: %w", c.kind.Kind, err)
	}
	obj = c.fields.UpdateNoErrors(live, obj, options.Manager)
	user, _ := request.UserFrom(ctx)
	attributes := admission.NewAttributesRecord(obj, nil, c.kind, namespace, name, c.resource, "", admission.Create, options.CreateOptions, dryrun.IsDryRun(options.DryRun), user)
	if mutating, ok := c.admission.(admission.MutationInterface); ok && mutating.Handles(admission.Create) {
		if err := mutating.Admit(ctx, attributes, c.objects); err != nil {
			return nil, err
		}
	}
	validate := rest.AdmissionToValidateObjectFunc(c.admission, attributes, c.objects)
	return c.storage.Create(ctx, obj, func(ctx context.Context, obj runtime.Object) error {
		final, err := meta.Accessor(obj)
		if err != nil {
			return err
		}
		if named != nil {
			named(final.GetName())
		}
		return validate(ctx, obj)
	}, options.CreateOptions)
}
