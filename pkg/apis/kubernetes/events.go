// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package kubernetes

import (
	"cmp"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/borough-io/borough/pkg/apis/convert"
)

// Events of core/v1 and of events.k8s.io/v1 are the same objects. The internal type is
// that of core/v1.

// StoredResource returns the resource whose objects are stored for a resource: Events of
// both groups are those of core/v1. Any other resource is its own.
func StoredResource(resource schema.GroupResource) schema.GroupResource {
	if resource == eventsv1.Resource("events") {
		return corev1.Resource("events")
	}
	return resource
}

func addEventConversions(scheme *runtime.Scheme) error {
	return cmp.Or(
		convert.Add(scheme, eventToCore),
		convert.Add(scheme, eventFromCore),
		convert.Add(scheme, func(in *eventsv1.EventList, out *corev1.EventList) {
			out.ListMeta, out.Items = in.ListMeta, convert.Slice(in.Items, eventToCore)
		}),
		convert.Add(scheme, func(in *corev1.EventList, out *eventsv1.EventList) {
			out.ListMeta, out.Items = in.ListMeta, convert.Slice(in.Items, eventFromCore)
		}),
	)
}

func eventToCore(in *eventsv1.Event, out *corev1.Event) {
	*out = corev1.Event{
		ObjectMeta:          in.ObjectMeta,
		InvolvedObject:      in.Regarding,
		Reason:              in.Reason,
		Message:             in.Note,
		Source:              in.DeprecatedSource,
		FirstTimestamp:      in.DeprecatedFirstTimestamp,
		LastTimestamp:       in.DeprecatedLastTimestamp,
		Count:               in.DeprecatedCount,
		Type:                in.Type,
		EventTime:           in.EventTime,
		Action:              in.Action,
		Related:             in.Related,
		ReportingController: in.ReportingController,
		ReportingInstance:   in.ReportingInstance,
	}
	if in.Series != nil {
		out.Series = &corev1.EventSeries{Count: in.Series.Count, LastObservedTime: in.Series.LastObservedTime}
	}
}

func eventFromCore(in *corev1.Event, out *eventsv1.Event) {
	*out = eventsv1.Event{
		ObjectMeta:               in.ObjectMeta,
		EventTime:                in.EventTime,
		ReportingController:      in.ReportingController,
		ReportingInstance:        in.ReportingInstance,
		Action:                   in.Action,
		Reason:                   in.Reason,
		Regarding:                in.InvolvedObject,
		Related:                  in.Related,
		Note:                     in.Message,
		Type:                     in.Type,
		DeprecatedSource:         in.Source,
		DeprecatedFirstTimestamp: in.FirstTimestamp,
		DeprecatedLastTimestamp:  in.LastTimestamp,
		DeprecatedCount:          in.Count,
	}
	if in.Series != nil {
		out.Series = &eventsv1.EventSeries{Count: in.Series.Count, LastObservedTime: in.Series.LastObservedTime}
	}
}

// The fields that Events can be selected by. Those of events.k8s.io have other names for
// the same.
var (
	eventFields = map[string]string{
		"metadata.name": "metadata.name", "metadata.namespace": "metadata.namespace",
		"reason": "reason", "type": "type", "source": "source", "reportingComponent": "reportingComponent",
		"involvedObject.apiVersion":      "involvedObject.apiVersion",
		"involvedObject.fieldPath":       "involvedObject.fieldPath",
		"involvedObject.kind":            "involvedObject.kind",
		"involvedObject.name":            "involvedObject.name",
		"involvedObject.namespace":       "involvedObject.namespace",
		"involvedObject.resourceVersion": "involvedObject.resourceVersion",
		"involvedObject.uid":             "involvedObject.uid",
	}
	newEventFields = map[string]string{
		"metadata.name": "metadata.name", "metadata.namespace": "metadata.namespace",
		"reason": "reason", "type": "type", "reportingController": "reportingComponent",
		"regarding.apiVersion":      "involvedObject.apiVersion",
		"regarding.fieldPath":       "involvedObject.fieldPath",
		"regarding.kind":            "involvedObject.kind",
		"regarding.name":            "involvedObject.name",
		"regarding.namespace":       "involvedObject.namespace",
		"regarding.resourceVersion": "involvedObject.resourceVersion",
		"regarding.uid":             "involvedObject.uid",
	}
)

func addEventFields(scheme *runtime.Scheme) error {
	selectable := func(fields map[string]string) runtime.FieldLabelConversionFunc {
		return func(label, value string) (string, string, error) {
			if internal, ok := fields[label]; ok {
				return internal, value, nil
			}
			return "", "", fmt.Errorf("field label not supported: %s", label)
		}
	}
	return cmp.Or(
		scheme.AddFieldLabelConversionFunc(corev1.SchemeGroupVersion.WithKind("Event"), selectable(eventFields)),
		scheme.AddFieldLabelConversionFunc(eventsv1.SchemeGroupVersion.WithKind("Event"), selectable(newEventFields)),
	)
}
