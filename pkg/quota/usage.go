// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

// Package quota computes what objects use of ResourceQuotas, and whether a write may
// change it. The rules and their texts are those of Kubernetes' quota admission and
// its evaluator of Pods, with two exceptions. Usage does not depend on the time: a Pod
// that outlives its grace period counts until it is removed. And what a resize requests
// counts also when the node has refused the resize: otherwise the usage would grow, and
// could exceed a quota, when the node writes to the status that it has accepted another.
package quota

import (
	"iter"
	"maps"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	quotav1 "k8s.io/apiserver/pkg/quota/v1"
	resourcehelper "k8s.io/component-helpers/resource"

	"github.com/borough-io/borough/pkg/apis/tenancy"
	corevalidation "github.com/borough-io/borough/pkg/corepod/validation"
)

// deviceClassPrefix begins the names of extended resources that stand for a class of
// devices.
const deviceClassPrefix = "deviceclass.resource.kubernetes.io/"

// Usage is what one object uses.
type Usage struct {
	resources corev1.ResourceList
	// scopes is nil if the object is not a Pod.
	scopes *scopes
	// pod is the Pod, for the resources that it does not name.
	pod *corev1.Pod
}

// Of returns what an object of the resource uses. It does not change the object. The
// object must not change as long as the usage can be that of Change.New.
func Of(resource schema.GroupResource, obj runtime.Object) *Usage {
	usage := &Usage{resources: Count(resource)}
	if pod, ok := obj.(*tenancy.Pod); ok {
		usage.pod = (*corev1.Pod)(pod)
		usage.scopes = scopesOf(usage.pod)
		addPod(usage.resources, usage.pod)
	}
	return usage
}

// Count returns what each object of the resource uses, regardless of its content. Resources of
// our group count also by the names that they have in the core group.
func Count(gr schema.GroupResource) corev1.ResourceList {
	if gr == corev1.Resource("events") {
		return corev1.ResourceList{} // they expire, which no write is charged for; as in Kubernetes
	}
	one := *resource.NewQuantity(1, resource.DecimalSI)
	count := corev1.ResourceList{corev1.ResourceName("count/" + gr.String()): one}
	if gr.Group == tenancy.GroupName {
		count[corev1.ResourceName("count/"+gr.Resource)] = one
	}
	if gr == tenancy.Resource("resourcequotas") {
		count[corev1.ResourceQuotas] = one
	}
	return count
}

// addPod adds what a Pod uses until it has succeeded or failed: the larger one of what it
// requests and what its node has allocated.
func addPod(usage corev1.ResourceList, pod *corev1.Pod) {
	addPodWith(usage, withoutNegative(pod), resourcehelper.PodResourcesOptions{UseStatusResources: true})
}

// withoutNegative returns the Pod without negative amounts in what its node reports, which no
// validation refuses: they would reduce what the Pod uses.
func withoutNegative(pod *corev1.Pod) *corev1.Pod {
	isNegative := func(_ corev1.ResourceName, quantity resource.Quantity) bool { return quantity.Sign() < 0 }
	negative := false
	for list := range reported(&pod.Status) {
		for name, quantity := range list {
			negative = negative || isNegative(name, quantity)
		}
	}
	if !negative {
		return pod
	}
	copied := *pod
	copied.Status = *pod.Status.DeepCopy()
	for list := range reported(&copied.Status) {
		maps.DeleteFunc(list, isNegative)
	}
	return &copied
}

// reported returns the resources that the node of a Pod reports.
func reported(status *corev1.PodStatus) iter.Seq[corev1.ResourceList] {
	return func(yield func(corev1.ResourceList) bool) {
		more := func(allocated corev1.ResourceList, resources *corev1.ResourceRequirements) bool {
			return yield(allocated) && (resources == nil || yield(resources.Requests) && yield(resources.Limits))
		}
		if !more(status.AllocatedResources, status.Resources) {
			return
		}
		for _, statuses := range [][]corev1.ContainerStatus{status.ContainerStatuses, status.InitContainerStatuses} {
			for i := range statuses {
				if !more(statuses[i].AllocatedResources, statuses[i].Resources) {
					return
				}
			}
		}
	}
}

// requested returns what a Pod uses without what its node has allocated.
func requested(pod *corev1.Pod) corev1.ResourceList {
	usage := corev1.ResourceList{}
	addPodWith(usage, pod, resourcehelper.PodResourcesOptions{})
	return usage
}

func addPodWith(usage corev1.ResourceList, pod *corev1.Pod, options resourcehelper.PodResourcesOptions) {
	if pod.Status.Phase == corev1.PodFailed || pod.Status.Phase == corev1.PodSucceeded {
		return
	}
	// The library adds the overhead in place to the Pod's own quantities, if they are not
	// stored as integers.
	if pod.Spec.Overhead != nil && pod.Spec.Resources != nil {
		copied := *pod
		copied.Spec.Resources = pod.Spec.Resources.DeepCopy()
		pod = &copied
	}
	if resourcehelper.IsPodResizeInfeasible(pod) {
		copied := *pod
		copied.Status.Conditions = nil
		pod = &copied
	}
	addCompute(usage, resourcehelper.PodRequests(pod, options), resourcehelper.PodLimits(pod, options))
	usage[corev1.ResourcePods] = *resource.NewQuantity(1, resource.DecimalSI)
}

// addCompute adds requests and limits under the names that quotas have for them.
func addCompute(usage, requests, limits corev1.ResourceList) {
	for name, quantity := range requests {
		requested := corev1.DefaultResourceRequestsPrefix + name
		switch {
		case name == corev1.ResourceCPU, name == corev1.ResourceMemory, name == corev1.ResourceEphemeralStorage,
			corevalidation.IsHugePageResource(name):
			usage[name], usage[requested] = quantity, quantity
		case corevalidation.IsExtendedResource(name), strings.HasPrefix(string(name), deviceClassPrefix):
			usage[requested] = quantity
		}
	}
	for name, quantity := range limits {
		switch name {
		case corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourceEphemeralStorage:
			usage["limits."+name] = quantity
		}
	}
}

// required are the resources that every container has to name if a quota limits them.
var required = sets.New(
	corev1.ResourceCPU, corev1.ResourceMemory,
	corev1.ResourceRequestsCPU, corev1.ResourceRequestsMemory,
	corev1.ResourceLimitsCPU, corev1.ResourceLimitsMemory,
)

// missing returns the required resources of hard that containers of the Pod do not
// name, with the names of the containers.
func missing(pod *corev1.Pod, hard corev1.ResourceList) map[corev1.ResourceName]sets.Set[string] {
	if pod == nil || resourcehelper.IsPodLevelResourcesSet(pod) {
		return nil
	}
	names := sets.New(quotav1.ResourceNames(hard)...).Intersection(required)
	if len(names) == 0 {
		return nil
	}
	missing := map[corev1.ResourceName]sets.Set[string]{}
	for _, containers := range [][]corev1.Container{pod.Spec.Containers, pod.Spec.InitContainers} {
		for i := range containers {
			named := corev1.ResourceList{}
			addCompute(named, containers[i].Resources.Requests, containers[i].Resources.Limits)
			for name := range names {
				if _, ok := named[name]; ok {
					continue
				}
				if missing[name] == nil {
					missing[name] = sets.New[string]()
				}
				missing[name].Insert(containers[i].Name)
			}
		}
	}
	return missing
}
