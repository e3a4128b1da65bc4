// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

// Package pod serves Pods and their subresources from etcd. Most of the rules by which
// they are created, changed, deleted, selected and printed are those of core/v1, which
// package corepod has.
package pod

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/registry/rest"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/borough-io/borough/pkg/apis/coregroup"
	"github.com/borough-io/borough/pkg/apis/tenancy"
	"github.com/borough-io/borough/pkg/corepod/prepare"
	"github.com/borough-io/borough/pkg/corepod/validation"
	"github.com/borough-io/borough/pkg/corepod/warnings"
	"github.com/borough-io/borough/pkg/registry/deletion"
	"github.com/borough-io/borough/pkg/registry/standard"
)

// core returns the Pod as one of core/v1, which has the same fields. They share their
// content.
func core(obj runtime.Object) *corev1.Pod { return (*corev1.Pod)(obj.(*tenancy.Pod)) }

// base is what the strategies of the resource and its subresources share. An update of
// a Pod has no warnings: most updates come from programs, often, and what there is to warn
// of was said when the Pod was created.
type base struct{ standard.Strategy }

func newBase(typer runtime.ObjectTyper) base {
	return base{standard.NewStrategy(typer)}
}

func (base) NamespaceScoped() bool                    { return true }
func (base) AllowCreateOnUpdate(context.Context) bool { return false }

// Strategy holds the rules for Pods themselves.
type Strategy struct{ base }

// StatusStrategy holds the rules for pods/status.
type StatusStrategy struct{ base }

// ResizeStrategy holds the rules for pods/resize.
type ResizeStrategy struct{ base }

// EphemeralContainersStrategy holds the rules for pods/ephemeralcontainers.
type EphemeralContainersStrategy struct{ base }

var (
	_ rest.RESTCreateStrategy         = Strategy{}
	_ rest.RESTUpdateStrategy         = Strategy{}
	_ rest.RESTGracefulDeleteStrategy = Strategy{}
	_ rest.ResetFieldsStrategy        = Strategy{}
	_ rest.RESTUpdateStrategy         = StatusStrategy{}
	_ rest.ResetFieldsStrategy        = StatusStrategy{}
	_ rest.RESTUpdateStrategy         = ResizeStrategy{}
	_ rest.RESTUpdateStrategy         = EphemeralContainersStrategy{}
)

// NewStrategy returns the rules for Pods.
func NewStrategy(typer runtime.ObjectTyper) Strategy {
	return Strategy{newBase(typer)}
}

// NewStatusStrategy returns the rules for the status subresource.
func NewStatusStrategy(typer runtime.ObjectTyper) StatusStrategy {
	return StatusStrategy{newBase(typer)}
}

// NewResizeStrategy returns the rules for the resize subresource.
func NewResizeStrategy(typer runtime.ObjectTyper) ResizeStrategy {
	return ResizeStrategy{newBase(typer)}
}

// NewEphemeralContainersStrategy returns the rules for the ephemeralcontainers
// subresource.
func NewEphemeralContainersStrategy(typer runtime.ObjectTyper) EphemeralContainersStrategy {
	return EphemeralContainersStrategy{newBase(typer)}
}

// PrepareForCreate sets the initial status of the Pod.
func (Strategy) PrepareForCreate(ctx context.Context, obj runtime.Object) {
	prepare.ForCreate(ctx, core(obj))
}

// Validate checks a new Pod.
func (Strategy) Validate(_ context.Context, obj runtime.Object) field.ErrorList {
	return validation.ValidatePodCreate(core(obj))
}

// WarningsOnCreate returns warnings for fields of a new Pod that are deprecated,
// ambiguous or without effect.
func (Strategy) WarningsOnCreate(_ context.Context, obj runtime.Object) []string {
	return warnings.ForPod(core(obj))
}

// PrepareForUpdate keeps the status.
func (Strategy) PrepareForUpdate(_ context.Context, obj, old runtime.Object) {
	prepare.ForUpdate(core(obj), core(old))
}

// ValidateUpdate checks an update.
func (Strategy) ValidateUpdate(_ context.Context, obj, old runtime.Object) field.ErrorList {
	return validation.ValidatePodUpdate(core(obj), core(old))
}

// GetResetFields returns the fields that PrepareForUpdate resets, so that
// server-side apply assigns no owner to them.
func (Strategy) GetResetFields() map[fieldpath.APIVersion]*fieldpath.Set {
	return coregroup.ResetFields(fieldpath.MakePathOrDie("status"))
}

// CheckGracefulDelete settles how many seconds the Pod has to end.
func (Strategy) CheckGracefulDelete(ctx context.Context, obj runtime.Object, options *metav1.DeleteOptions) bool {
	if options == nil {
		return false
	}
	period := prepare.GracePeriodSeconds(core(obj), deletion.GracePeriodSeconds(ctx, options))
	options.GracePeriodSeconds = &period
	return true
}
