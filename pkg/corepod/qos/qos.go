// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

// Package qos computes the quality-of-service class of a Pod.
package qos

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/borough-io/borough/pkg/corepod"
)

// computeResources are the resources that decide the class; all others are
// ignored.
var computeResources = []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory}

// ComputePodQOS returns the class that the resources of the Pod give it, as
// kube-apiserver computes it:
//
//   - BestEffort: no cpu or memory is requested or limited anywhere;
//   - Guaranteed: cpu and memory are limited everywhere and the requests are
//     equal to the limits;
//   - Burstable: the rest.
//
// Resources of the Pod itself (spec.resources), when present, decide alone.
// Otherwise containers and init containers do; ephemeral containers have none.
func ComputePodQOS(pod *corev1.Pod) corev1.PodQOSClass {
	var requests, limits totals
	limitedEverywhere := true
	count := func(r *corev1.ResourceRequirements) {
		requests.add(r.Requests)
		limits.add(r.Limits)
		for _, name := range computeResources {
			limitedEverywhere = limitedEverywhere && positive(r.Limits[name])
		}
	}

	spec := &pod.Spec
	if spec.Resources != nil {
		count(spec.Resources)
	} else {
		for _, c := range corepod.ContainersWithResources(spec) {
			count(&c.Resources)
		}
	}

	switch {
	case requests.empty() && limits.empty():
		return corev1.PodQOSBestEffort
	case limitedEverywhere && requests.equal(&limits):
		return corev1.PodQOSGuaranteed
	default:
		return corev1.PodQOSBurstable
	}
}

func positive(q resource.Quantity) bool { return q.Sign() > 0 }

// totals is the sum of the positive quantities of each compute resource.
type totals [2]resource.Quantity

func (t *totals) add(list corev1.ResourceList) {
	for i, name := range computeResources {
		if q := list[name]; positive(q) {
			t[i].Add(q)
		}
	}
}

func (t *totals) empty() bool { return t[0].IsZero() && t[1].IsZero() }

func (t *totals) equal(other *totals) bool {
	return t[0].Cmp(other[0]) == 0 && t[1].Cmp(other[1]) == 0
}
