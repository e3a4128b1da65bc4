// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

// Package namespacetemplate holds the rules by which NamespaceTemplates are written,
// selected, printed and chosen for Namespaces.
package namespacetemplate

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/registry/generic"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/apiserver/pkg/storage/names"

	"github.com/borough-io/borough/pkg/apis/tenancy"
	"github.com/borough-io/borough/pkg/apis/tenancy/validation"
	"github.com/borough-io/borough/pkg/registry/errorlimit"
)

// Strategy holds the rules for NamespaceTemplates.
type Strategy struct {
	runtime.ObjectTyper
	names.NameGenerator
	errorlimit.Strategy
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
	return Strategy{ObjectTyper: typer, NameGenerator: names.SimpleNameGenerator, rights: rights}
}

// NamespaceScoped is false.
func (Strategy) NamespaceScoped() bool { return false }

// AllowCreateOnUpdate is false.
func (Strategy) AllowCreateOnUpdate(context.Context) bool { return false }

// AllowUnconditionalUpdate is true: an update needs no resourceVersion.
func (Strategy) AllowUnconditionalUpdate(context.Context) bool { return true }

// PrepareForCreate changes nothing.
func (Strategy) PrepareForCreate(context.Context, runtime.Object) {}

// PrepareForUpdate changes nothing: a NamespaceTemplate has no status.
func (Strategy) PrepareForUpdate(context.Context, runtime.Object, runtime.Object) {}

// Validate checks a new NamespaceTemplate.
func (s Strategy) Validate(_ context.Context, obj runtime.Object) field.ErrorList {
	return validation.ValidateNamespaceTemplate(obj.(*tenancy.NamespaceTemplate), s.rights)
}

// ValidateUpdate checks an update.
func (s Strategy) ValidateUpdate(_ context.Context, obj, old runtime.Object) field.ErrorList {
	return validation.ValidateNamespaceTemplateUpdate(obj.(*tenancy.NamespaceTemplate), old.(*tenancy.NamespaceTemplate), s.rights)
}

// Canonicalize changes nothing: defaulting has filled in what is missing.
func (Strategy) Canonicalize(runtime.Object) {}

// WarningsOnCreate warns of nothing.
func (Strategy) WarningsOnCreate(context.Context, runtime.Object) []string { return nil }

// WarningsOnUpdate warns of nothing.
func (Strategy) WarningsOnUpdate(context.Context, runtime.Object, runtime.Object) []string {
	return nil
}

// GetAttrs returns what a NamespaceTemplate can be selected by.
func GetAttrs(obj runtime.Object) (labels.Set, fields.Set, error) {
	template, ok := obj.(*tenancy.NamespaceTemplate)
	if !ok {
		return nil, nil, fmt.Errorf("select a namespace template: got %T", obj)
	}
	return template.Labels, generic.ObjectMetaFieldsSet(&template.ObjectMeta, false), nil
}

// Match returns the predicate that selects NamespaceTemplates by label and field.
func Match(label labels.Selector, field fields.Selector) storage.SelectionPredicate {
	return storage.SelectionPredicate{Label: label, Field: field, GetAttrs: GetAttrs}
}
