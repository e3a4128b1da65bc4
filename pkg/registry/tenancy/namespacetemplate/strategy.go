// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

// Package namespacetemplate holds the rules by which NamespaceTemplates are written,
// printed and chosen for Namespaces.
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

// Strategy holds the rules for NamespaceTemplates.
type Strategy struct {
	standard.Strategy
	rights bool
}

var (
	_ rest.RESTCreateStrategy = Strategy{}
	_ rest.RESTUpdateStrategy = Strategy{}
	_ rest.RESTDeleteStrategy = Strategy{}
)

// NewStrategy returns the rules for NamespaceTemplates. They may have RoleBindings if
// the server has rights.
func NewStrategy(typer runtime.ObjectTyper, rights bool) Strategy {
	return Strategy{standard.NewStrategy(typer), rights}
}

// NamespaceScoped is false.
func (Strategy) NamespaceScoped() bool { return false }

// AllowCreateOnUpdate is false.
func (Strategy) AllowCreateOnUpdate(context.Context) bool { return false }

// Validate checks a new NamespaceTemplate.
func (s Strategy) Validate(_ context.Context, obj runtime.Object) field.ErrorList {
	return validation.ValidateNamespaceTemplate(obj.(*tenancy.NamespaceTemplate), s.rights)
}

// ValidateUpdate checks an update.
func (s Strategy) ValidateUpdate(_ context.Context, obj, old runtime.Object) field.ErrorList {
	return validation.ValidateNamespaceTemplateUpdate(obj.(*tenancy.NamespaceTemplate), old.(*tenancy.NamespaceTemplate), s.rights)
}
