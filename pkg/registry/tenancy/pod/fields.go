// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package pod

import (
	"fmt"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/registry/generic"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/client-go/tools/cache"

	"github.com/borough-io/borough/pkg/apis/tenancy"
)

// nodeNameField is what Pods are selected by most: everything that works for one
// node lists and watches the Pods of that node. It has an index.
const nodeNameField = "spec.nodeName"

// GetAttrs returns what a Pod can be selected by.
func GetAttrs(obj runtime.Object) (labels.Set, fields.Set, error) {
	pod, ok := obj.(*tenancy.Pod)
	if !ok {
		return nil, nil, fmt.Errorf("select a pod: got %T", obj)
	}
	// The watch cache keeps the map of each version of a Pod. A missing field is selected as
	// an empty one, so only those that are set take memory.
	selectable := make(fields.Set, 8)
	set := func(field, value string) {
		if value != "" {
			selectable[field] = value
		}
	}
	set(nodeNameField, pod.Spec.NodeName)
	set("spec.restartPolicy", string(pod.Spec.RestartPolicy))
	set("spec.schedulerName", pod.Spec.SchedulerName)
	set("spec.serviceAccountName", pod.Spec.ServiceAccountName)
	set("spec.hostNetwork", strconv.FormatBool(pod.Spec.HostNetwork))
	set("status.phase", string(pod.Status.Phase))
	set("status.nominatedNodeName", pod.Status.NominatedNodeName)
	set("status.podIP", primaryIP(pod))
	set("status.podIPs", joinIPs(pod.Status.PodIPs))
	if pod.DeletionTimestamp != nil {
		set(tenancy.PodBeingDeletedInField, pod.Namespace)
	}
	return pod.Labels, generic.AddObjectMetaFieldsSet(selectable, &pod.ObjectMeta, true), nil
}

func primaryIP(pod *tenancy.Pod) string {
	if len(pod.Status.PodIPs) == 0 {
		return ""
	}
	return pod.Status.PodIPs[0].IP
}

// joinIPs writes the addresses as the downward API gives them to containers.
func joinIPs(list []corev1.PodIP) string {
	switch len(list) {
	case 0:
		return ""
	case 1:
		return list[0].IP
	}
	ips := make([]string, len(list))
	for i := range list {
		ips[i] = list[i].IP
	}
	return strings.Join(ips, ",")
}

// Match returns the predicate that selects Pods by label and field.
func Match(label labels.Selector, field fields.Selector) storage.SelectionPredicate {
	return storage.SelectionPredicate{
		Label:       label,
		Field:       field,
		GetAttrs:    GetAttrs,
		IndexFields: []string{nodeNameField},
	}
}

// Indexers finds the Pods of a node, and those of a Namespace that are being deleted, in the
// watch cache without looking at all.
func Indexers() *cache.Indexers {
	return &cache.Indexers{
		storage.FieldIndex(nodeNameField): func(obj any) ([]string, error) {
			pod, ok := obj.(*tenancy.Pod)
			if !ok {
				return nil, fmt.Errorf("index a pod by node: got %T", obj)
			}
			return []string{pod.Spec.NodeName}, nil
		},
		storage.FieldIndex(tenancy.PodBeingDeletedInField): func(obj any) ([]string, error) {
			pod, ok := obj.(*tenancy.Pod)
			if !ok {
				return nil, fmt.Errorf("index a pod that is being deleted: got %T", obj)
			}
			if pod.DeletionTimestamp == nil {
				return nil, nil
			}
			return []string{pod.Namespace}, nil
		},
	}
}

// Triggers sends an event only to the watches of the node that it is about, and
// to those of all nodes.
func Triggers() storage.IndexerFuncs {
	return storage.IndexerFuncs{
		nodeNameField: func(obj runtime.Object) string { return obj.(*tenancy.Pod).Spec.NodeName },
	}
}
