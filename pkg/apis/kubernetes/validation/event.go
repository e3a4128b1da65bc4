// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

// Package validation checks objects of the kinds of Kubernetes that a standalone server
// serves only because others write them. The rules and texts are those of Kubernetes.
package validation

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	corevalidation "github.com/borough-io/borough/pkg/corepod/validation"
)

// The limits of an Event with an eventTime, in bytes.
const (
	maxNote = 1024
	maxWord = 128 // of the reason, the action and the reporting instance
)

// ValidateEvent checks a new Event. In events.k8s.io, which newGroup stands for, more
// fields are required.
func ValidateEvent(event *corev1.Event, newGroup bool) field.ErrorList {
	errs := append(validateEvent(event, newGroup), validateBounds(event)...)
	if !newGroup {
		return errs
	}
	errs = append(errs, corevalidation.ValidateObjectMeta(&event.ObjectMeta, true, apivalidation.NameIsDNSSubdomain, field.NewPath("metadata"))...)
	errs = append(errs, validateSeries(event)...)
	if event.EventTime.IsZero() {
		errs = append(errs, field.Required(field.NewPath("eventTime"), ""))
	}
	if event.Type != corev1.EventTypeNormal && event.Type != corev1.EventTypeWarning {
		errs = append(errs, field.Invalid(field.NewPath("type"), "", fmt.Sprintf("has invalid value: %v", event.Type)))
	}
	for _, unset := range []struct {
		path string
		is   bool
	}{
		{"firstTimestamp", event.FirstTimestamp.IsZero()},
		{"lastTimestamp", event.LastTimestamp.IsZero()},
		{"count", event.Count == 0},
		{"source", event.Source == corev1.EventSource{}},
	} {
		if !unset.is {
			errs = append(errs, field.Invalid(field.NewPath(unset.path), "", "needs to be unset"))
		}
	}
	return errs
}

// ValidateEventUpdate checks an update. In events.k8s.io only the series may change, and
// the metadata.
func ValidateEventUpdate(event, old *corev1.Event, newGroup bool) field.ErrorList {
	errs := append(validateEvent(event, newGroup), validateBounds(event)...)
	if !newGroup {
		return errs
	}
	errs = append(errs, corevalidation.ValidateObjectMetaUpdate(&event.ObjectMeta, &old.ObjectMeta, field.NewPath("metadata"))...)
	if (event.Series == nil) != (old.Series == nil) || event.Series != nil && *event.Series != *old.Series {
		errs = append(errs, validateSeries(event)...)
	}
	immutable := func(name string, value, old any) {
		errs = append(errs, apivalidation.ValidateImmutableField(value, old, field.NewPath(name))...)
	}
	immutable("involvedObject", event.InvolvedObject, old.InvolvedObject)
	immutable("reason", event.Reason, old.Reason)
	immutable("message", event.Message, old.Message)
	immutable("source", event.Source, old.Source)
	immutable("firstTimestamp", event.FirstTimestamp, old.FirstTimestamp)
	immutable("lastTimestamp", event.LastTimestamp, old.LastTimestamp)
	immutable("count", event.Count, old.Count)
	immutable("type", event.Type, old.Type)
	// Clients write the time with a precision of microseconds (kubernetes#111928).
	if !event.EventTime.Truncate(time.Microsecond).Equal(old.EventTime.Truncate(time.Microsecond)) {
		immutable("eventTime", event.EventTime, old.EventTime)
	}
	immutable("action", event.Action, old.Action)
	immutable("related", event.Related, old.Related)
	immutable("reportingController", event.ReportingController, old.ReportingController)
	immutable("reportingInstance", event.ReportingInstance, old.ReportingInstance)
	return errs
}

// maxEvent is the maximum size of an Event in bytes. Those of client-go have at most 1024 in
// the message.
const maxEvent = 16 << 10

// validateBounds differs from Kubernetes: an Event must not keep its Namespace, and Events,
// which quotas do not count, must not fill etcd.
func validateBounds(event *corev1.Event) (errs field.ErrorList) {
	if len(event.Finalizers) > 0 {
		errs = append(errs, field.Forbidden(field.NewPath("metadata", "finalizers"), "an event expires, and cannot have finalizers"))
	}
	if size := event.Size(); size > maxEvent {
		errs = append(errs, field.Invalid(field.NewPath("event"), "", fmt.Sprintf("has %d bytes, and can have at most %d", size, maxEvent)))
	}
	return errs
}

// validateEvent checks what both groups require. An Event without an eventTime is one of
// a client that knows only core/v1.
func validateEvent(event *corev1.Event, newGroup bool) field.ErrorList {
	var errs field.ErrorList
	involved := event.InvolvedObject.Namespace
	noMatch := func() {
		errs = append(errs, field.Invalid(field.NewPath("involvedObject", "namespace"), involved, "does not match event.namespace"))
	}
	switch {
	case !event.EventTime.IsZero():
		if involved == "" && event.Namespace != metav1.NamespaceDefault && event.Namespace != metav1.NamespaceSystem {
			noMatch()
		}
		errs = append(errs, validateReport(event, newGroup)...)
	case involved == "" && event.Namespace != "" && event.Namespace != metav1.NamespaceDefault,
		involved != "" && event.Namespace != involved:
		noMatch()
	}
	for _, msg := range utilvalidation.IsDNS1123Subdomain(event.Namespace) {
		errs = append(errs, field.Invalid(field.NewPath("namespace"), event.Namespace, msg))
	}
	return errs
}

// validateReport checks who reports what in an Event with an eventTime.
func validateReport(event *corev1.Event, newGroup bool) field.ErrorList {
	var errs field.ErrorList
	controller := field.NewPath("reportingController")
	if !newGroup {
		controller = field.NewPath("reportingComponent")
	}
	if event.ReportingController == "" {
		errs = append(errs, field.Required(controller, ""))
	}
	for _, msg := range utilvalidation.IsQualifiedName(event.ReportingController) {
		errs = append(errs, field.Invalid(controller, event.ReportingController, msg))
	}
	for _, word := range []struct{ name, value string }{
		{"reportingInstance", event.ReportingInstance}, {"action", event.Action}, {"reason", event.Reason},
	} {
		if word.value == "" {
			errs = append(errs, field.Required(field.NewPath(word.name), ""))
		}
		if len(word.value) > maxWord {
			errs = append(errs, field.Invalid(field.NewPath(word.name), "", fmt.Sprintf("can have at most %v characters", maxWord)))
		}
	}
	if len(event.Message) > maxNote {
		errs = append(errs, field.Invalid(field.NewPath("message"), "", fmt.Sprintf("can have at most %v characters", maxNote)))
	}
	return errs
}

func validateSeries(event *corev1.Event) field.ErrorList {
	var errs field.ErrorList
	if event.Series == nil {
		return nil
	}
	if event.Series.Count < 2 {
		errs = append(errs, field.Invalid(field.NewPath("series.count"), "", "should be at least 2"))
	}
	if event.Series.LastObservedTime.IsZero() {
		errs = append(errs, field.Required(field.NewPath("series.lastObservedTime"), ""))
	}
	return errs
}
