// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

// Package ownerreferences is the admission plugin that checks the rights of users
// who change owner references.
package ownerreferences

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/initializer"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	"github.com/borough-io/borough/pkg/apis/tenancy"
)

// PluginName is the name of the plugin in flags, as in Kubernetes, whose plugin this
// one mirrors. The library does not have it.
const PluginName = "OwnerReferencesPermissionEnforcement"

// Register registers the plugin.
func Register(plugins *admission.Plugins) {
	plugins.Register(PluginName, func(io.Reader) (admission.Interface, error) {
		return &Plugin{Handler: admission.NewHandler(admission.Create, admission.Update)}, nil
	})
}

// Plugin requires of a user who
//
//   - changes the owner references of an existing object: the right to delete the
//     object, because the garbage collector deletes it when its owners are gone;
//   - sets blockOwnerDeletion: the right to update the subresource finalizers of the
//     owner, because the object then delays a foreground deletion of the owner.
type Plugin struct {
	*admission.Handler
	authorizer authorizer.UnconditionalAuthorizer
	mapper     meta.RESTMapper
}

var (
	_ admission.ValidationInterface            = &Plugin{}
	_ initializer.WantsUnconditionalAuthorizer = &Plugin{}
	_ initializer.WantsRESTMapper              = &Plugin{}
)

// SetUnconditionalAuthorizer sets the authorizer that decides about the rights.
func (p *Plugin) SetUnconditionalAuthorizer(a authorizer.UnconditionalAuthorizer) { p.authorizer = a }

// SetRESTMapper sets the mapper from the kinds of owners to their resources.
func (p *Plugin) SetRESTMapper(mapper meta.RESTMapper) { p.mapper = mapper }

// ValidateInitialization returns an error if the plugin is not fully initialized.
func (p *Plugin) ValidateInitialization() error {
	if p.authorizer == nil {
		return errors.New("missing the authorizer")
	}
	if p.mapper == nil {
		return errors.New("missing the REST mapper")
	}
	return nil
}

// Validate returns Forbidden if the user lacks a right.
func (p *Plugin) Validate(ctx context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	owners, before := ownersOf(a.GetObject()), ownersOf(a.GetOldObject())
	if equality.Semantic.DeepEqual(owners, before) {
		return nil
	}
	if a.GetOperation() != admission.Create {
		right := authorizer.AttributesRecord{
			User: a.GetUserInfo(), Verb: "delete",
			APIGroup: a.GetResource().Group, APIVersion: a.GetResource().Version,
			Resource: a.GetResource().Resource, Subresource: a.GetSubresource(),
			Namespace: namespaceOf(a), Name: a.GetName(), ResourceRequest: true,
		}
		if allowed, reason := p.allows(ctx, right); !allowed {
			return admission.NewForbidden(a, fmt.Errorf("cannot set an ownerRef on a resource you can't delete: %s", reason))
		}
	}
	blocking := slices.DeleteFunc(slices.Clone(owners), func(owner metav1.OwnerReference) bool {
		return !blocks(owner) || slices.ContainsFunc(before, func(old metav1.OwnerReference) bool { return old.UID == owner.UID && blocks(old) })
	})
	if len(blocking) == 0 {
		return nil
	}
	// A user with the right for everything does not need discovery, which may be
	// unavailable.
	everything := finalizers(a, schema.GroupVersionResource{Group: "*", Version: "*", Resource: "*"}, "*")
	if allowed, _ := p.allows(ctx, everything); allowed {
		return nil
	}
	for _, owner := range blocking {
		if err := p.checkOwner(ctx, a, owner); err != nil {
			return admission.NewForbidden(a, err)
		}
	}
	return nil
}

// checkOwner returns an error if the user must not block the deletion of the owner.
// The kind of an owner can map to several resources: the user needs the right for all.
func (p *Plugin) checkOwner(ctx context.Context, a admission.Attributes, owner metav1.OwnerReference) error {
	gv, err := schema.ParseGroupVersion(owner.APIVersion)
	var mappings []*meta.RESTMapping
	if err == nil {
		mappings, err = p.mapper.RESTMappings(gv.WithKind(owner.Kind).GroupKind(), gv.Version)
	}
	if err != nil {
		return fmt.Errorf("cannot set blockOwnerDeletion in this case because cannot find RESTMapping for APIVersion %s Kind %s: %w", owner.APIVersion, owner.Kind, err)
	}
	for _, mapping := range mappings {
		right := finalizers(a, mapping.Resource, owner.Name)
		if mapping.Scope.Name() == meta.RESTScopeNameNamespace {
			right.Namespace = namespaceOf(a) // an owner is in the namespace of its dependents
		}
		if allowed, reason := p.allows(ctx, right); !allowed {
			return fmt.Errorf("cannot set blockOwnerDeletion if an ownerReference refers to a resource you can't set finalizers on: %s", reason)
		}
	}
	return nil
}

// finalizers returns the right to update the finalizers of an object.
func finalizers(a admission.Attributes, resource schema.GroupVersionResource, name string) authorizer.AttributesRecord {
	return authorizer.AttributesRecord{
		User: a.GetUserInfo(), Verb: "update",
		APIGroup: resource.Group, APIVersion: resource.Version, Resource: resource.Resource, Subresource: "finalizers",
		Name: name, ResourceRequest: true,
	}
}

// namespaceOf returns the namespace of a right on the object. As in authorization, that on a
// Namespace is in this Namespace.
func namespaceOf(a admission.Attributes) string {
	if a.GetResource().GroupResource() == tenancy.Resource("namespaces") {
		return a.GetName()
	}
	return a.GetNamespace()
}

// allows reports whether the user of the right has it. The reason is the text of
// Kubernetes: what the authorizer says, and its error.
func (p *Plugin) allows(ctx context.Context, right authorizer.AttributesRecord) (allowed bool, reason string) {
	decision, reason, err := p.authorizer.Authorize(ctx, right)
	return decision == authorizer.DecisionAllow, fmt.Sprintf("%s, %v", reason, err)
}

func blocks(owner metav1.OwnerReference) bool {
	return owner.BlockOwnerDeletion != nil && *owner.BlockOwnerDeletion
}

// ownersOf returns the owner references of an object, or none if it has no metadata,
// as a Binding has.
func ownersOf(o runtime.Object) []metav1.OwnerReference {
	accessor, err := meta.Accessor(o)
	if err != nil {
		return nil
	}
	return accessor.GetOwnerReferences()
}
