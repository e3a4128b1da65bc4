// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// newEvent returns an Event that is valid in both groups.
func newEvent() *corev1.Event {
	return &corev1.Event{
		ObjectMeta:          metav1.ObjectMeta{Name: "e", Namespace: "ns", ResourceVersion: "1"},
		InvolvedObject:      corev1.ObjectReference{Namespace: "ns", Kind: "Pod", Name: "p"},
		EventTime:           metav1.NewMicroTime(time.Unix(1, 2000)),
		ReportingController: "example.com/c",
		ReportingInstance:   "i",
		Action:              "a",
		Reason:              "r",
		Type:                corev1.EventTypeNormal,
	}
}

func TestValidateEvent(t *testing.T) {
	long := strings.Repeat("x", 1025)
	for name, test := range map[string]struct {
		change       func(*corev1.Event)
		core, events string
	}{
		"valid":      {func(*corev1.Event) {}, "", ""},
		"finalizers": {func(e *corev1.Event) { e.Finalizers = []string{"example.com/f"} }, "metadata.finalizers: Forbidden", "metadata.finalizers: Forbidden"},
		"large":      {func(e *corev1.Event) { e.Annotations = map[string]string{"a": strings.Repeat("x", 16<<10)} }, `event: Invalid value: "": has 16`, `event: Invalid value: "": has 16`},
		"another":    {func(e *corev1.Event) { e.InvolvedObject.Namespace = "" }, "involvedObject.namespace: Invalid", "involvedObject.namespace: Invalid"},
		"no time":    {func(e *corev1.Event) { e.EventTime = metav1.MicroTime{} }, "", "eventTime: Required"},
		"of core only": {func(e *corev1.Event) {
			*e = corev1.Event{ObjectMeta: e.ObjectMeta, InvolvedObject: e.InvolvedObject, Count: 1}
		}, "", "count: Invalid"},
		"no reporter":  {func(e *corev1.Event) { e.ReportingController = "" }, "reportingComponent: Required", "reportingController: Required"},
		"no instance":  {func(e *corev1.Event) { e.ReportingInstance = "" }, "reportingInstance: Required", "reportingInstance: Required"},
		"long reason":  {func(e *corev1.Event) { e.Reason = long }, "reason: Invalid value: \"\": can have at most 128", "reason: Invalid value: \"\": can have at most 128"},
		"long message": {func(e *corev1.Event) { e.Message = long }, "message: Invalid value: \"\": can have at most 1024", "message: Invalid"},
		"type":         {func(e *corev1.Event) { e.Type = "Other" }, "", "type: Invalid"},
		"series":       {func(e *corev1.Event) { e.Series = &corev1.EventSeries{Count: 1} }, "", "series.count: Invalid"},
		"source":       {func(e *corev1.Event) { e.Source.Host = "h" }, "", "source: Invalid"},
	} {
		event := newEvent()
		test.change(event)
		for group, want := range map[bool]string{false: test.core, true: test.events} {
			errs := ValidateEvent(event, group)
			switch got := errs.ToAggregate(); {
			case want == "" && len(errs) > 0, want != "" && (got == nil || !strings.Contains(got.Error(), want)):
				t.Errorf("%s, in events.k8s.io %t: got %v, want %q", name, group, got, want)
			}
		}
	}
}

func TestValidateEventUpdate(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*corev1.Event)
		events string
	}{
		"nothing":      {func(*corev1.Event) {}, ""},
		"labels":       {func(e *corev1.Event) { e.Labels = map[string]string{"a": "b"} }, ""},
		"series":       {func(e *corev1.Event) { e.Series = &corev1.EventSeries{Count: 2, LastObservedTime: e.EventTime} }, ""},
		"wrong series": {func(e *corev1.Event) { e.Series = &corev1.EventSeries{Count: 2} }, "series.lastObservedTime: Required"},
		"reason":       {func(e *corev1.Event) { e.Reason = "other" }, "reason: Invalid"},
		"object":       {func(e *corev1.Event) { e.InvolvedObject.Name = "other" }, "involvedObject: Invalid"},
		"nanoseconds":  {func(e *corev1.Event) { e.EventTime = metav1.NewMicroTime(e.EventTime.Add(1)) }, ""},
		"time":         {func(e *corev1.Event) { e.EventTime = metav1.NewMicroTime(e.EventTime.Add(time.Second)) }, "eventTime: Invalid"},
	} {
		event := newEvent()
		test.change(event)
		if errs := ValidateEventUpdate(event, newEvent(), false); len(errs) > 0 {
			t.Errorf("%s, in core/v1: %v", name, errs)
		}
		errs := ValidateEventUpdate(event, newEvent(), true)
		switch got := errs.ToAggregate(); {
		case test.events == "" && len(errs) > 0, test.events != "" && (got == nil || !strings.Contains(got.Error(), test.events)):
			t.Errorf("%s: got %v, want %q", name, got, test.events)
		}
	}
}

func TestValidateLease(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*coordinationv1.Lease)
		want   string
	}{
		"valid":                 {func(*coordinationv1.Lease) {}, ""},
		"unqualified finalizer": {func(l *coordinationv1.Lease) { l.Finalizers = []string{"f"} }, ""},
		"duration":              {func(l *coordinationv1.Lease) { l.Spec.LeaseDurationSeconds = new(int32(0)) }, "spec.leaseDurationSeconds: Invalid"},
		"transitions":           {func(l *coordinationv1.Lease) { l.Spec.LeaseTransitions = new(int32(-1)) }, "spec.leaseTransitions: Invalid"},
	} {
		lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: "l", Namespace: "ns", ResourceVersion: "1"}}
		old := lease.DeepCopy()
		test.change(lease)
		for request, errs := range map[string]field.ErrorList{"create": ValidateLease(lease), "update": ValidateLeaseUpdate(lease, old)} {
			switch got := errs.ToAggregate(); {
			case test.want == "" && len(errs) > 0, test.want != "" && (got == nil || !strings.Contains(got.Error(), test.want)):
				t.Errorf("%s, %s: got %v, want %q", name, request, got, test.want)
			}
		}
	}
}
