// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package qos_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/borough-io/borough/pkg/corepod/qos"
)

func TestComputePodQOS(t *testing.T) {
	container := func(requests, limits corev1.ResourceList) corev1.Container {
		return corev1.Container{Resources: corev1.ResourceRequirements{Requests: requests, Limits: limits}}
	}
	var (
		none       = container(nil, nil)
		guaranteed = container(list("cpu", "1", "memory", "1Gi"), list("cpu", "1000m", "memory", "1Gi"))
		limited    = container(nil, list("cpu", "1", "memory", "1Gi"))
		burstable  = container(list("cpu", "1"), nil)
	)
	pod := func(containers ...corev1.Container) corev1.PodSpec {
		return corev1.PodSpec{Containers: containers}
	}
	podLevel := func(requests, limits corev1.ResourceList, containers ...corev1.Container) corev1.PodSpec {
		spec := pod(containers...)
		spec.Resources = &corev1.ResourceRequirements{Requests: requests, Limits: limits}
		return spec
	}
	withInit := func(spec corev1.PodSpec, containers ...corev1.Container) corev1.PodSpec {
		spec.InitContainers = containers
		return spec
	}
	for _, test := range []struct {
		name string
		spec corev1.PodSpec
		want corev1.PodQOSClass
	}{
		{"no containers", pod(), corev1.PodQOSBestEffort},
		{"no resources", pod(none, none), corev1.PodQOSBestEffort},
		{"zero", pod(container(list("cpu", "0"), list("memory", "0"))), corev1.PodQOSBestEffort},
		{"other resources", pod(container(list("example.com/gpu", "1"), list("ephemeral-storage", "1"))), corev1.PodQOSBestEffort},
		{"requests are limits", pod(guaranteed, guaranteed), corev1.PodQOSGuaranteed},
		{"requests are limits and there is more", pod(container(
			list("cpu", "1", "memory", "1", "example.com/gpu", "1"), list("cpu", "1", "memory", "1", "ephemeral-storage", "1"))), corev1.PodQOSGuaranteed},
		{"limits without requests, before defaults", pod(limited), corev1.PodQOSBurstable},
		{"requests alone", pod(burstable), corev1.PodQOSBurstable},
		{"memory is not limited", pod(container(list("cpu", "1"), list("cpu", "1"))), corev1.PodQOSBurstable},
		{"memory is limited to zero", pod(container(list("cpu", "1"), list("cpu", "1", "memory", "0"))), corev1.PodQOSBurstable},
		{"requests below limits", pod(container(list("cpu", "1", "memory", "1"), list("cpu", "2", "memory", "1"))), corev1.PodQOSBurstable},
		{"one container of two", pod(guaranteed, none), corev1.PodQOSBurstable},
		{"differences that balance", pod(
			container(list("cpu", "1", "memory", "1"), list("cpu", "2", "memory", "1")),
			container(list("cpu", "2", "memory", "1"), list("cpu", "1", "memory", "1"))), corev1.PodQOSBurstable},
		{"init container without resources", withInit(pod(guaranteed), none), corev1.PodQOSBurstable},
		{"init container alone", withInit(pod(none), burstable), corev1.PodQOSBurstable},
		{"pod-level requests are limits", podLevel(list("cpu", "1", "memory", "1"), list("cpu", "1", "memory", "1"), burstable), corev1.PodQOSGuaranteed},
		{"pod-level requests alone", podLevel(list("cpu", "1"), nil, guaranteed), corev1.PodQOSBurstable},
		{"pod-level cpu limit alone", podLevel(list("cpu", "1"), list("cpu", "1"), guaranteed), corev1.PodQOSBurstable},
		{"pod-level without anything", podLevel(nil, nil, guaranteed), corev1.PodQOSGuaranteed},
		{"pod-level resources that are not of the Pod", podLevel(list("example.com/gpu", "1"), nil, guaranteed), corev1.PodQOSGuaranteed},
		{"pod-level zero", podLevel(list("cpu", "0"), list("memory", "0"), guaranteed), corev1.PodQOSBestEffort},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := qos.ComputePodQOS(&corev1.Pod{Spec: test.spec}); got != test.want {
				t.Errorf("got %s, want %s", got, test.want)
			}
		})
	}
}

func list(pairs ...string) corev1.ResourceList {
	list := corev1.ResourceList{}
	for i := 0; i < len(pairs); i += 2 {
		list[corev1.ResourceName(pairs[i])] = resource.MustParse(pairs[i+1])
	}
	return list
}
