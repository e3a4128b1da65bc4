// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package event

import (
	"cmp"
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/generic"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/borough-io/borough/pkg/apis/kubernetes/validation"
	"github.com/borough-io/borough/pkg/registry/standard"
)

// strategy has the rules by which Events are written.
type strategy struct{ standard.Strategy }

var (
	_ rest.RESTCreateStrategy              = strategy{}
	_ rest.RESTUpdateStrategy              = strategy{}
	_ rest.GarbageCollectionDeleteStrategy = strategy{}
)

func (strategy) NamespaceScoped() bool                    { return true }
func (strategy) AllowCreateOnUpdate(context.Context) bool { return true }

// DefaultGarbageCollectionPolicy says that propagation policies do not apply: they would
// add a finalizer.
func (strategy) DefaultGarbageCollectionPolicy(context.Context) rest.GarbageCollectionPolicy {
	return rest.Unsupported
}

// Validate checks a new Event. The rules of events.k8s.io are stricter.
func (strategy) Validate(ctx context.Context, obj runtime.Object) field.ErrorList {
	return validation.ValidateEvent(obj.(*corev1.Event), inNewGroup(ctx))
}

// ValidateUpdate checks an update.
func (strategy) ValidateUpdate(ctx context.Context, obj, old runtime.Object) field.ErrorList {
	return validation.ValidateEventUpdate(obj.(*corev1.Event), old.(*corev1.Event), inNewGroup(ctx))
}

// inNewGroup reports whether the request is for events.k8s.io.
func inNewGroup(ctx context.Context) bool {
	info, ok := request.RequestInfoFrom(ctx)
	return ok && info.APIGroup == eventsv1.GroupName
}

// getAttrs returns what an Event can be selected by, as in Kubernetes.
func getAttrs(obj runtime.Object) (labels.Set, fields.Set, error) {
	event, ok := obj.(*corev1.Event)
	if !ok {
		return nil, nil, fmt.Errorf("select an event: got %T", obj)
	}
	involved := &event.InvolvedObject
	return event.Labels, generic.AddObjectMetaFieldsSet(fields.Set{
		"involvedObject.apiVersion":      involved.APIVersion,
		"involvedObject.fieldPath":       involved.FieldPath,
		"involvedObject.kind":            involved.Kind,
		"involvedObject.name":            involved.Name,
		"involvedObject.namespace":       involved.Namespace,
		"involvedObject.resourceVersion": involved.ResourceVersion,
		"involvedObject.uid":             string(involved.UID),
		"reason":                         event.Reason,
		"reportingComponent":             event.ReportingController,
		"source":                         cmp.Or(event.Source.Component, event.ReportingController),
		"type":                           event.Type,
	}, &event.ObjectMeta, true), nil
}
