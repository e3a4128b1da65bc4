// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package pod

import (
	"reflect"

	corev1 "k8s.io/api/core/v1"

	"github.com/borough-io/borough/pkg/apis/tenancy"
)

// dropGated drops the fields of features that are off by default in Kubernetes 1.36,
// or that it does not have. They would have no effect, and their meaning may change.
// Fields that the stored Pod uses are kept.
func dropGated(pod, old *tenancy.Pod) {
	for _, feature := range gated {
		if old == nil || !used(feature, old) {
			feature(pod, func(field any) { reflect.ValueOf(field).Elem().SetZero() })
		}
	}
}

func used(feature feature, pod *tenancy.Pod) (used bool) {
	feature(pod, func(field any) { used = used || !reflect.ValueOf(field).Elem().IsZero() })
	return used
}

// feature visits the fields that a feature has in a Pod, by pointers to them.
type feature func(pod *tenancy.Pod, visit func(field any))

// gated are the features, each below the name of its gate.
var gated = []feature{
	// GenericWorkload
	func(pod *tenancy.Pod, visit func(any)) { visit(&pod.Spec.SchedulingGroup) },
	// EvictionRequestAPI
	func(pod *tenancy.Pod, visit func(any)) { visit(&pod.Spec.EvictionResponders) },
	// CSIVolumeHealth
	func(pod *tenancy.Pod, visit func(any)) { visit(&pod.Status.VolumeHealth) },
	// DRANodeAllocatableResources
	func(pod *tenancy.Pod, visit func(any)) { visit(&pod.Status.NodeAllocatableResourceClaimStatuses) },
	// ImageVolumeWithDigest
	func(pod *tenancy.Pod, visit func(any)) {
		status := &pod.Status
		for _, statuses := range [][]corev1.ContainerStatus{status.InitContainerStatuses, status.ContainerStatuses, status.EphemeralContainerStatuses} {
			for i := range statuses {
				for j := range statuses[i].VolumeMounts {
					visit(&statuses[i].VolumeMounts[j].VolumeStatus)
				}
			}
		}
	},
	// ContainerStopSignals
	ofContainers(func(container *corev1.Container, visit func(any)) {
		switch lifecycle := container.Lifecycle; {
		case lifecycle == nil, lifecycle.StopSignal == nil:
		case lifecycle.PostStart == nil && lifecycle.PreStop == nil:
			visit(&container.Lifecycle)
		default:
			visit(&lifecycle.StopSignal)
		}
	}),
	// VolumeBindMountOptions
	ofContainers(func(container *corev1.Container, visit func(any)) {
		for i := range container.VolumeMounts {
			visit(&container.VolumeMounts[i].BindMountOptions)
		}
	}),
	// H2CContainerProbe
	ofContainers(func(container *corev1.Container, visit func(any)) {
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
	}),
	// GRPCContainerProbeTLS
	ofContainers(func(container *corev1.Container, visit func(any)) {
		for _, probe := range probes(container) {
			if probe.GRPC != nil {
				visit(&probe.GRPC.Mode)
			}
		}
	}),
	// EmptyDirVolumeMode
	ofVolumes(func(volume *corev1.Volume, visit func(any)) {
		if volume.EmptyDir != nil {
			visit(&volume.EmptyDir.Mode)
		}
	}),
	// ClusterTrustBundleProjection
	ofProjections(func(source *corev1.VolumeProjection, visit func(any)) { visit(&source.ClusterTrustBundle) }),
	// PodCertificateProjection
	ofProjections(func(source *corev1.VolumeProjection, visit func(any)) { visit(&source.PodCertificate) }),
	// AtomicWriteVolumeUserFields
	ofVolumes(usersOfVolume),
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

func ofContainers(fields func(*corev1.Container, func(any))) feature {
	return func(pod *tenancy.Pod, visit func(any)) {
		for _, container := range containers(&pod.Spec) {
			fields(container, visit)
		}
	}
}

func ofVolumes(fields func(*corev1.Volume, func(any))) feature {
	return func(pod *tenancy.Pod, visit func(any)) {
		for i := range pod.Spec.Volumes {
			fields(&pod.Spec.Volumes[i], visit)
		}
	}
}

func ofProjections(fields func(*corev1.VolumeProjection, func(any))) feature {
	return ofVolumes(func(volume *corev1.Volume, visit func(any)) {
		if volume.Projected == nil {
			return
		}
		for i := range volume.Projected.Sources {
			fields(&volume.Projected.Sources[i], visit)
		}
	})
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
