// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/kube-openapi/pkg/common"
	"k8s.io/kube-openapi/pkg/util"

	"github.com/borough-io/borough/pkg/apis/coregroup"
	"github.com/borough-io/borough/pkg/apis/tenancy"
	v1 "github.com/borough-io/borough/pkg/apis/tenancy/v1"
	"github.com/borough-io/borough/pkg/registry/standard"
	"github.com/borough-io/borough/pkg/registry/tenancy/namespace"
	"github.com/borough-io/borough/pkg/registry/tenancy/pod"
)

// A standalone server serves the kinds that our group shares with core/v1 in both
// groups, from the same storage. A request for one group passes the same admission, and
// is allowed by the same rights, as one for the other. Only the version of objects, the
// short names and the texts of errors depend on the group.

// coreResources returns the storage of the core group. What the resources are served
// from is ended with our group.
func coreResources(own map[string]rest.Storage) map[string]rest.Storage {
	resources := map[string]rest.Storage{}
	for _, name := range coregroup.Resources() {
		switch storage := own[name].(type) {
		case *namespace.REST:
			resources[name] = coreNamespaces{storage}
		case *pod.BindingREST:
			resources[name] = storage
			resources["bindings"] = coreBindings{storage}
		case *standard.REST:
			resources[name] = coreContent{storage, coreShortNames[name], coreCategories[name]}
		default:
			resources[name] = storage
		}
	}
	return resources
}

var (
	coreShortNames = map[string][]string{"pods": {"po"}, "limitranges": {"limits"}, "resourcequotas": {"quota"}}
	coreCategories = map[string][]string{"pods": {"all"}}
)

type coreNamespaces struct{ *namespace.REST }

func (coreNamespaces) ShortNames() []string { return []string{"ns"} }
func (coreNamespaces) Destroy()             {}

// coreBindings are an older form of pods/binding, which our group does not have: a Binding
// names its Pod. As in Kubernetes, its UID is ignored.
type coreBindings struct{ binding *pod.BindingREST }

var _ rest.Creater = coreBindings{}

func (coreBindings) NamespaceScoped() bool   { return true }
func (coreBindings) GetSingularName() string { return "binding" }
func (b coreBindings) New() runtime.Object   { return b.binding.New() }
func (coreBindings) Destroy()                {}

func (b coreBindings) Create(ctx context.Context, obj runtime.Object, validate rest.ValidateObjectFunc, options *metav1.CreateOptions) (runtime.Object, error) {
	binding, ok := obj.(*tenancy.Binding)
	if !ok {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("not a Binding object: %T", obj))
	}
	return b.binding.Create(ctx, binding.Name, obj, validate, options)
}

type coreContent struct {
	*standard.REST
	shortNames, categories []string
}

func (c coreContent) ShortNames() []string { return c.shortNames }
func (c coreContent) Categories() []string { return c.categories }
func (coreContent) Destroy()               {}

// oneGroup is admission that sees a request for a shared resource as one for our group,
// so that no plugin has to know both.
type oneGroup struct{ admission.Interface }

var (
	_ admission.MutationInterface   = oneGroup{}
	_ admission.ValidationInterface = oneGroup{}
)

// Handles implements admission.Interface.
func (g oneGroup) Handles(admission.Operation) bool { return true }

// Admit implements admission.MutationInterface. Before the plugins, it changes the
// managed fields of a new object: in a request for the core group, the library has
// added some in the version of core/v1. Of an update, coregroup.UpdatedObjectInfo does.
func (g oneGroup) Admit(ctx context.Context, a admission.Attributes, o admission.ObjectInterfaces) error {
	if object, ok := a.GetObject().(metav1.Object); ok && a.GetOperation() == admission.Create && coregroup.OwnKind(a.GetKind()) != a.GetKind() {
		object.SetManagedFields(coregroup.OwnManagedFields(object.GetManagedFields()))
	}
	if plugin, ok := g.Interface.(admission.MutationInterface); ok && g.Interface.Handles(a.GetOperation()) {
		return plugin.Admit(ctx, ownAttributes{a}, o)
	}
	return nil
}

// Validate implements admission.ValidationInterface.
func (g oneGroup) Validate(ctx context.Context, a admission.Attributes, o admission.ObjectInterfaces) error {
	if plugin, ok := g.Interface.(admission.ValidationInterface); ok && g.Interface.Handles(a.GetOperation()) {
		return plugin.Validate(ctx, ownAttributes{a}, o)
	}
	return nil
}

// ownAttributes are the attributes of the same request for our group. Objects are
// internal ones, which are the same.
type ownAttributes struct{ admission.Attributes }

// GetResource implements admission.Attributes.
func (a ownAttributes) GetResource() schema.GroupVersionResource {
	resource := a.Attributes.GetResource()
	resource.Group = coregroup.OwnGroup(resource.Group, resource.Resource)
	return resource
}

// GetKind implements admission.Attributes.
func (a ownAttributes) GetKind() schema.GroupVersionKind {
	return coregroup.OwnKind(a.Attributes.GetKind())
}

// equivalentResources returns a registry in which both forms of a resource are
// equivalent.
func equivalentResources() runtime.EquivalentResourceRegistry {
	return runtime.NewEquivalentResourceRegistryWithIdentity(func(resource schema.GroupResource) string {
		resource.Group = coregroup.OwnGroup(resource.Group, resource.Resource)
		return resource.String()
	})
}

// linkModels lets the OpenAPI definition of each shared kind depend on that in the other
// group. The managed fields of an object may be those of both. Where only one is known,
// the library drops the managers of the other.
func linkModels(definitions map[string]common.OpenAPIDefinition) {
	for _, kind := range []struct{ core, own any }{
		{&corev1.Namespace{}, &v1.Namespace{}},
		{&corev1.LimitRange{}, &v1.LimitRange{}},
		{&corev1.ResourceQuota{}, &v1.ResourceQuota{}},
		{&corev1.Pod{}, &v1.Pod{}},
	} {
		core, own := util.GetCanonicalTypeName(kind.core), util.GetCanonicalTypeName(kind.own)
		for of, on := range map[string]string{core: own, own: core} {
			definition := definitions[of]
			definition.Dependencies = append(slices.Clip(definition.Dependencies), on)
			definitions[of] = definition
		}
	}
}
