// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

// Package features knows the fields of a Pod that belong to disabled features.
package features

import (
	"reflect"

	corev1 "k8s.io/api/core/v1"

	"github.com/borough-io/borough/pkg/corepod"
)

// DropDisabled drops the fields of features that are off by default in the pinned
// release, or that it does not have. They would have no effect, and their meaning
// may change. Fields that the stored Pod uses are kept.
func DropDisabled(pod, old *corev1.Pod) {
	for _, gate := range disabled {
		if old == nil || !used(gate.fields, old) {
			gate.fields(pod, func(field any) { reflect.ValueOf(field).Elem().SetZero() })
		}
	}
}

func used(fields fields, pod *corev1.Pod) (used bool) {
	fields(pod, func(field any) { used = used || !reflect.ValueOf(field).Elem().IsZero() })
	return used
}

// Disabled returns the names of the feature gates whose fields are dropped.
func Disabled() []string {
	names := make([]string, len(disabled))
	for i := range disabled {
		names[i] = disabled[i].name
	}
	return names
}

// gate is a feature gate and what belongs to it in a Pod.
type gate struct {
	name   string
	fields fields
}

// fields visits the fields of a feature in a Pod, by pointers to them.
type fields func(pod *corev1.Pod, visit func(field any))

// disabled are the gates that are off by default in the pinned release, or unknown to
// it, and have fields in a Pod.
var disabled = []gate{
	{"GenericWorkload", func(pod *corev1.Pod, visit func(any)) { visit(&pod.Spec.SchedulingGroup) }},
	{"EvictionRequestAPI", func(pod *corev1.Pod, visit func(any)) { visit(&pod.Spec.EvictionResponders) }},
	{"CSIVolumeHealth", func(pod *corev1.Pod, visit func(any)) { visit(&pod.Status.VolumeHealth) }},
	{"DRANodeAllocatableResources", func(pod *corev1.Pod, visit func(any)) { visit(&pod.Status.NodeAllocatableResourceClaimStatuses) }},
	{"ImageVolumeWithDigest", func(pod *corev1.Pod, visit func(any)) {
		status := &pod.Status
		for _, statuses := range [][]corev1.ContainerStatus{status.InitContainerStatuses, status.ContainerStatuses, status.EphemeralContainerStatuses} {
			for i := range statuses {
				for j := range statuses[i].VolumeMounts {
					visit(&statuses[i].VolumeMounts[j].VolumeStatus)
				}
			}
		}
	}},
	{"ContainerStopSignals", ofContainers(func(container *corev1.Container, visit func(any)) {
		switch lifecycle := container.Lifecycle; {
		case lifecycle == nil, lifecycle.StopSignal == nil:
		case lifecycle.PostStart == nil && lifecycle.PreStop == nil:
			visit(&container.Lifecycle)
		default:
			visit(&lifecycle.StopSignal)
		}
	})},
	{"VolumeBindMountOptions", ofContainers(func(container *corev1.Container, visit func(any)) {
		for i := range container.VolumeMounts {
			visit(&container.VolumeMounts[i].BindMountOptions)
		}
	})},
	{"H2CContainerProbe", ofContainers(func(container *corev1.Container, visit func(any)) {
		for _, probe := range probes(container) {
			if probe.HTTPGet != nil {
				visit(&probe.HTTPGet.Protocol)
			}
		}
		for _, handler := range lifecycleHandlers(container) {
			if handler.HTTPGet != nil {
				visit(&handler.HTTPGet.Protocol)
			}
		}
	})},
	{"GRPCContainerProbeTLS", ofContainers(func(container *corev1.Container, visit func(any)) {
		for _, probe := range probes(container) {
			if probe.GRPC != nil {
				visit(&probe.GRPC.Mode)
			}
		}
	})},
	{"EmptyDirVolumeMode", ofVolumes(func(volume *corev1.Volume, visit func(any)) {
		if volume.EmptyDir != nil {
			visit(&volume.EmptyDir.Mode)
		}
	})},
	{"AtomicWriteVolumeUserFields", ofVolumes(usersOfVolume)},
}

func usersOfVolume(volume *corev1.Volume, visit func(any)) {
	keys := func(items []corev1.KeyToPath) {
		for i := range items {
			visit(&items[i].User)
		}
	}
	files := func(items []corev1.DownwardAPIVolumeFile) {
		for i := range items {
			visit(&items[i].User)
		}
	}
	switch {
	case volume.Secret != nil:
		visit(&volume.Secret.DefaultUser)
		keys(volume.Secret.Items)
	case volume.ConfigMap != nil:
		visit(&volume.ConfigMap.DefaultUser)
		keys(volume.ConfigMap.Items)
	case volume.DownwardAPI != nil:
		visit(&volume.DownwardAPI.DefaultUser)
		files(volume.DownwardAPI.Items)
	case volume.Projected != nil:
		visit(&volume.Projected.DefaultUser)
		for _, source := range volume.Projected.Sources {
			if source.Secret != nil {
				keys(source.Secret.Items)
			}
			if source.ConfigMap != nil {
				keys(source.ConfigMap.Items)
			}
			if source.DownwardAPI != nil {
				files(source.DownwardAPI.Items)
			}
			if source.ServiceAccountToken != nil {
				visit(&source.ServiceAccountToken.User)
			}
			if source.ClusterTrustBundle != nil {
				visit(&source.ClusterTrustBundle.User)
			}
			if source.PodCertificate != nil {
				visit(&source.PodCertificate.User)
			}
		}
	}
}

func ofContainers(visitFields func(*corev1.Container, func(any))) fields {
	return func(pod *corev1.Pod, visit func(any)) {
		for _, container := range corepod.Containers(&pod.Spec, nil) {
			visitFields(container, visit)
		}
	}
}

func ofVolumes(visitFields func(*corev1.Volume, func(any))) fields {
	return func(pod *corev1.Pod, visit func(any)) {
		for i := range pod.Spec.Volumes {
			visitFields(&pod.Spec.Volumes[i], visit)
		}
	}
}

// probes are those that the container has.
func probes(container *corev1.Container) (probes []*corev1.Probe) {
	for _, probe := range []*corev1.Probe{container.LivenessProbe, container.ReadinessProbe, container.StartupProbe} {
		if probe != nil {
			probes = append(probes, probe)
		}
	}
	return probes
}

// lifecycleHandlers are those that the container has.
func lifecycleHandlers(container *corev1.Container) (handlers []*corev1.LifecycleHandler) {
	if container.Lifecycle == nil {
		return nil
	}
	for _, handler := range []*corev1.LifecycleHandler{container.Lifecycle.PostStart, container.Lifecycle.PreStop} {
		if handler != nil {
			handlers = append(handlers, handler)
		}
	}
	return handlers
}
