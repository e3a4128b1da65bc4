// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package namespacetemplate

import (
	"context"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/borough-io/borough/pkg/apis/tenancy"
	"github.com/borough-io/borough/pkg/apis/tenancy/validation"
	"github.com/borough-io/borough/pkg/registry/standard"
)

// strategy holds the rules for NamespaceTemplates.
type strategy struct {
	standard.Strategy
	rights bool // they may have RoleBindings
}

var (
	_ rest.RESTCreateStrategy = strategy{}
	_ rest.RESTUpdateStrategy = strategy{}
	_ rest.RESTDeleteStrategy = strategy{}
)

// NamespaceScoped is false.
func (strategy) NamespaceScoped() bool { return false }

// AllowCreateOnUpdate is false.
func (strategy) AllowCreateOnUpdate(context.Context) bool { return false }

// Validate checks a new NamespaceTemplate.
func (s strategy) Validate(_ context.Context, obj runtime.Object) field.ErrorList {
	return validation.ValidateNamespaceTemplate(obj.(*tenancy.NamespaceTemplate), s.rights)
}

// ValidateUpdate checks an update.
func (s strategy) ValidateUpdate(_ context.Context, obj, old runtime.Object) field.ErrorList {
	return validation.ValidateNamespaceTemplateUpdate(obj.(*tenancy.NamespaceTemplate), old.(*tenancy.NamespaceTemplate), s.rights)
}
