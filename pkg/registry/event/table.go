// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package event

import (
	"cmp"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/borough-io/borough/pkg/registry/table"
)

// newTableConvertor prints Events as kubectl prints those of Kubernetes.
func newTableConvertor() rest.TableConvertor {
	doc := corev1.Event{}.SwaggerDoc()
	name := table.NameColumn()
	name.Priority = 1
	return table.NewConvertor(
		[]metav1.TableColumnDefinition{
			{Name: "Last Seen", Type: "string", Description: doc["lastTimestamp"]},
			{Name: "Type", Type: "string", Description: doc["type"]},
			{Name: "Reason", Type: "string", Description: doc["reason"]},
			{Name: "Object", Type: "string", Description: doc["involvedObject"]},
			{Name: "Subobject", Type: "string", Priority: 1, Description: corev1.ObjectReference{}.SwaggerDoc()["fieldPath"]},
			{Name: "Source", Type: "string", Priority: 1, Description: doc["source"]},
			{Name: "Message", Type: "string", Description: doc["message"]},
			{Name: "First Seen", Type: "string", Priority: 1, Description: doc["firstTimestamp"]},
			{Name: "Count", Type: "string", Priority: 1, Description: doc["count"]},
			name,
		},
		func(event *corev1.Event) ([]any, []metav1.TableRowCondition) {
			first, last, count := occurrences(event)
			return []any{
				table.Age(last), event.Type, event.Reason, object(&event.InvolvedObject), event.InvolvedObject.FieldPath,
				source(event), strings.TrimSpace(event.Message), table.Age(first), count, event.Name,
			}, nil
		})
}

// occurrences returns when what an Event is about happened first and last, and how
// often. An Event of events.k8s.io has other fields for that.
func occurrences(event *corev1.Event) (first, last metav1.Time, count int64) {
	first, last, count = event.FirstTimestamp, event.LastTimestamp, int64(event.Count)
	if first.IsZero() {
		first = metav1.Time(event.EventTime)
	}
	if last.IsZero() {
		last = first
	}
	if series := event.Series; series != nil {
		return first, metav1.Time(series.LastObservedTime), int64(series.Count)
	}
	return first, last, cmp.Or(count, 1)
}

func object(ref *corev1.ObjectReference) string {
	kind := strings.ToLower(ref.Kind)
	if ref.Name == "" {
		return kind
	}
	return kind + "/" + ref.Name
}

func source(event *corev1.Event) string {
	component := cmp.Or(event.Source.Component, event.ReportingController)
	if instance := cmp.Or(event.Source.Host, event.ReportingInstance); instance != "" {
		return component + ", " + instance
	}
	return component
}
