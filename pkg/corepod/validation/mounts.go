// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// validateVolumeMounts checks where the container sees volumes as directories.
func (s *podScope) validateVolumeMounts(c *corev1.Container, listPath *field.Path) field.ErrorList {
	var errs field.ErrorList
	// The last path of a volume stands for all, as in kube-apiserver.
	devices := map[string]string{}
	for _, device := range c.VolumeDevices {
		devices[device.Name] = device.DevicePath
	}
	devicePaths := sets.New(slices.Collect(maps.Values(devices))...)
	mountPaths := sets.New[string]()
	for i := range c.VolumeMounts {
		mount, path := &c.VolumeMounts[i], listPath.Index(i)
		errs = append(errs, required(path.Child("name"), mount.Name)...)
		if s.volumes[mount.Name] == nil {
			errs = append(errs, field.NotFound(path.Child("name"), mount.Name))
		}
		errs = append(errs, required(path.Child("mountPath"), mount.MountPath)...)
		if mountPaths.Has(mount.MountPath) {
			errs = append(errs, field.Invalid(path.Child("mountPath"), mount.MountPath, "must be unique"))
		}
		mountPaths.Insert(mount.MountPath)
		if _, found := devices[mount.Name]; found {
			errs = append(errs, field.Invalid(path.Child("name"), mount.Name, "must not already exist in volumeDevices"))
		}
		if devicePaths.Has(mount.MountPath) {
			errs = append(errs, field.Invalid(path.Child("mountPath"), mount.MountPath, "must not already exist as a path in volumeDevices"))
		}
		// From here on most of kube-apiserver's paths leave out the index.
		if mount.SubPath != "" {
			errs = append(errs, validateDescendingPath(mount.SubPath, listPath.Child("subPath"))...)
		}
		if mount.SubPathExpr != "" {
			if mount.SubPath != "" {
				errs = append(errs, field.Invalid(path.Child("subPathExpr"), mount.SubPathExpr, "subPathExpr and subPath are mutually exclusive"))
			}
			errs = append(errs, validateDescendingPath(mount.SubPathExpr, listPath.Child("subPathExpr"))...)
		}
		errs = append(errs, validateMountPropagation(mount, isPrivileged(c), listPath.Child("mountPropagation"))...)
		errs = append(errs, validateRecursiveReadOnly(mount, listPath.Child("recursiveReadOnly"))...)
	}
	return errs
}

func validateMountPropagation(mount *corev1.VolumeMount, privileged bool, path *field.Path) field.ErrorList {
	if mount.MountPropagation == nil {
		return nil
	}
	if *mount.MountPropagation == corev1.MountPropagationBidirectional && !privileged {
		return field.ErrorList{field.Forbidden(path, "Bidirectional mount propagation is available only to privileged containers")}
	}
	return supported(path, *mount.MountPropagation,
		corev1.MountPropagationBidirectional, corev1.MountPropagationHostToContainer, corev1.MountPropagationNone)
}

// validateRecursiveReadOnly checks that what is mounted within the volume is
// read-only only where the volume is.
func validateRecursiveReadOnly(mount *corev1.VolumeMount, path *field.Path) field.ErrorList {
	if mount.RecursiveReadOnly == nil || *mount.RecursiveReadOnly == corev1.RecursiveReadOnlyDisabled {
		return nil
	}
	errs := supported(path, *mount.RecursiveReadOnly,
		corev1.RecursiveReadOnlyDisabled, corev1.RecursiveReadOnlyEnabled, corev1.RecursiveReadOnlyIfPossible)
	if len(errs) > 0 {
		return errs
	}
	if !mount.ReadOnly {
		errs = append(errs, field.Forbidden(path, "may only be specified when readOnly is true"))
	}
	if mount.MountPropagation != nil && *mount.MountPropagation != corev1.MountPropagationNone {
		errs = append(errs, field.Forbidden(path, "may only be specified when mountPropagation is None or not specified"))
	}
	return errs
}

// validateVolumeDevices checks where the container sees volumes as block
// devices.
func (s *podScope) validateVolumeDevices(c *corev1.Container, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	mounts := map[string]string{}
	for _, mount := range c.VolumeMounts {
		mounts[mount.Name] = mount.MountPath
	}
	mountPaths := sets.New(slices.Collect(maps.Values(mounts))...)
	names, devicePaths := sets.New[string](), sets.New[string]()
	for i, device := range c.VolumeDevices {
		namePath, path := path.Index(i).Child("name"), path.Index(i).Child("devicePath")
		if device.Name == "" {
			errs = append(errs, field.Required(namePath, ""))
		} else if names.Has(device.Name) {
			errs = append(errs, field.Invalid(namePath, device.Name, "must be unique"))
		}
		if source := s.volumes[device.Name]; source == nil {
			errs = append(errs, field.NotFound(namePath, device.Name))
		} else if source.PersistentVolumeClaim == nil && source.Ephemeral == nil {
			errs = append(errs, field.Invalid(namePath, device.Name, "can only use volume source type of PersistentVolumeClaim or Ephemeral for block mode"))
		}
		errs = append(errs, required(path, device.DevicePath)...)
		if devicePaths.Has(device.DevicePath) {
			errs = append(errs, field.Invalid(path, device.DevicePath, "must be unique"))
		}
		if len(validateNoBacksteps(device.DevicePath, path)) > 0 {
			errs = append(errs, field.Invalid(path, device.DevicePath, "can not contain backsteps ('..')"))
		} else {
			devicePaths.Insert(device.DevicePath)
		}
		if _, found := mounts[device.Name]; found {
			errs = append(errs, field.Invalid(namePath, device.Name, "must not already exist in volumeMounts"))
		}
		if mountPaths.Has(device.DevicePath) {
			errs = append(errs, field.Invalid(path, device.DevicePath, "must not already exist as a path in volumeMounts"))
		}
		names.Insert(device.Name)
	}
	return errs
}
