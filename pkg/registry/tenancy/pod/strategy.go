// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

// Package pod holds the rules that apply when Pods are created, changed,
// deleted, selected and printed.
package pod

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/storage/names"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/borough-io/borough/pkg/apis/tenancy"
	"github.com/borough-io/borough/pkg/apis/tenancy/qos"
	v1 "github.com/borough-io/borough/pkg/apis/tenancy/v1"
	"github.com/borough-io/borough/pkg/apis/tenancy/validation"
	"github.com/borough-io/borough/pkg/registry/errorlimit"
)

// apiVersion is the version whose fields the strategies reset.
var apiVersion = fieldpath.APIVersion(v1.SchemeGroupVersion.String())

// base is what the strategies of the resource and its subresources share.
type base struct {
	runtime.ObjectTyper
	names.NameGenerator
	errorlimit.Strategy
}

func newBase(typer runtime.ObjectTyper) base {
	return base{ObjectTyper: typer, NameGenerator: names.SimpleNameGenerator}
}

func (base) NamespaceScoped() bool                         { return true }
func (base) AllowCreateOnUpdate(context.Context) bool      { return false }
func (base) AllowUnconditionalUpdate(context.Context) bool { return true }

// Canonicalize does nothing: what a Pod needs to be canonical, defaulting does.
func (base) Canonicalize(runtime.Object) {}

// WarningsOnUpdate returns nothing. Most updates come from programs, often, and
// what there is to warn of was said when the Pod was created.
func (base) WarningsOnUpdate(context.Context, runtime.Object, runtime.Object) []string { return nil }

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

// PrepareForCreate sets the initial status of the Pod and ignores the one in the
// request. It runs after mutating admission, so the QoS class includes the defaults
// of LimitRanges.
func (Strategy) PrepareForCreate(ctx context.Context, obj runtime.Object) {
	pod := obj.(*tenancy.Pod)
	pod.Generation = 1
	pod.Status = corev1.PodStatus{
		Phase:    corev1.PodPending,
		QOSClass: qos.ComputePodQOS(pod),
	}
	if len(pod.Spec.SchedulingGates) > 0 {
		SetCondition(&pod.Status, corev1.PodCondition{
			Type:    corev1.PodScheduled,
			Status:  corev1.ConditionFalse,
			Reason:  corev1.PodReasonSchedulingGated,
			Message: "Scheduling is blocked due to non-empty scheduling gates",
		})
	}
	dropGated(pod, nil)
	resolveLabelKeys(pod)
	syncAppArmor(ctx, pod)
}

// Validate checks a new Pod.
func (Strategy) Validate(_ context.Context, obj runtime.Object) field.ErrorList {
	return validation.ValidatePodCreate(obj.(*tenancy.Pod))
}

// WarningsOnCreate returns warnings for fields of a new Pod that are deprecated,
// ambiguous or without effect.
func (Strategy) WarningsOnCreate(_ context.Context, obj runtime.Object) []string {
	return warningsForPod(obj.(*tenancy.Pod))
}

// PrepareForUpdate keeps the status.
func (Strategy) PrepareForUpdate(_ context.Context, obj, old runtime.Object) {
	newPod, oldPod := obj.(*tenancy.Pod), old.(*tenancy.Pod)
	newPod.Status = oldPod.Status
	dropGated(newPod, oldPod)
	bumpGeneration(newPod, oldPod)
}

// ValidateUpdate checks an update.
func (Strategy) ValidateUpdate(_ context.Context, obj, old runtime.Object) field.ErrorList {
	return validation.ValidatePodUpdate(obj.(*tenancy.Pod), old.(*tenancy.Pod))
}

// GetResetFields returns the fields that PrepareForUpdate resets, so that
// server-side apply assigns no owner to them.
func (Strategy) GetResetFields() map[fieldpath.APIVersion]*fieldpath.Set {
	return map[fieldpath.APIVersion]*fieldpath.Set{
		apiVersion: fieldpath.NewSet(fieldpath.MakePathOrDie("status")),
	}
}

// CheckGracefulDelete settles how many seconds the Pod has to end: those of the
// request, else those of its spec, but none where nothing can be running.
func (Strategy) CheckGracefulDelete(_ context.Context, obj runtime.Object, options *metav1.DeleteOptions) bool {
	if options == nil {
		return false
	}
	pod := obj.(*tenancy.Pod)
	var period int64
	switch {
	case options.GracePeriodSeconds != nil:
		period = *options.GracePeriodSeconds
	case pod.Spec.TerminationGracePeriodSeconds != nil:
		period = *pod.Spec.TerminationGracePeriodSeconds
	}
	switch {
	case pod.Spec.NodeName == "", pod.Status.Phase == corev1.PodSucceeded, pod.Status.Phase == corev1.PodFailed:
		period = 0
	case period < 0:
		period = 1
	}
	options.GracePeriodSeconds = &period
	return true
}

// bumpGeneration counts a change of the spec.
func bumpGeneration(newPod, oldPod *tenancy.Pod) {
	if !apiequality.Semantic.DeepEqual(newPod.Spec, oldPod.Spec) {
		newPod.Generation++
	}
}

// SetCondition adds the condition, or replaces the one of the same type. The last
// transition time changes only if the status does.
func SetCondition(status *corev1.PodStatus, condition corev1.PodCondition) {
	condition.LastTransitionTime = metav1.Now()
	for i := range status.Conditions {
		old := &status.Conditions[i]
		if old.Type != condition.Type {
			continue
		}
		if old.Status == condition.Status {
			condition.LastTransitionTime = old.LastTransitionTime
		}
		*old = condition
		return
	}
	status.Conditions = append(status.Conditions, condition)
}
