// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package defaults

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
)

// SetDefaults_Volume makes a volume without a source an empty directory, and
// says how the image of an image volume is pulled.
func SetDefaults_Volume(obj *corev1.Volume) {
	if ptr.AllPtrFieldsNil(&obj.VolumeSource) {
		obj.EmptyDir = &corev1.EmptyDirVolumeSource{}
	}
	if obj.Image != nil && obj.Image.PullPolicy == "" {
		obj.Image.PullPolicy = defaultPullPolicy(obj.Image.Reference)
	}
}

// SetDefaults_HostPathVolumeSource asks for no check of what is at the path.
func SetDefaults_HostPathVolumeSource(obj *corev1.HostPathVolumeSource) {
	setIfNil(&obj.Type, corev1.HostPathUnset)
}

// SetDefaults_SecretVolumeSource sets the mode of the files.
func SetDefaults_SecretVolumeSource(obj *corev1.SecretVolumeSource) {
	setIfNil(&obj.DefaultMode, corev1.SecretVolumeSourceDefaultMode)
}

// SetDefaults_ConfigMapVolumeSource sets the mode of the files.
func SetDefaults_ConfigMapVolumeSource(obj *corev1.ConfigMapVolumeSource) {
	setIfNil(&obj.DefaultMode, corev1.ConfigMapVolumeSourceDefaultMode)
}

// SetDefaults_DownwardAPIVolumeSource sets the mode of the files.
func SetDefaults_DownwardAPIVolumeSource(obj *corev1.DownwardAPIVolumeSource) {
	setIfNil(&obj.DefaultMode, corev1.DownwardAPIVolumeSourceDefaultMode)
}

// SetDefaults_ProjectedVolumeSource sets the mode of the files.
func SetDefaults_ProjectedVolumeSource(obj *corev1.ProjectedVolumeSource) {
	setIfNil(&obj.DefaultMode, corev1.ProjectedVolumeSourceDefaultMode)
}

// SetDefaults_ServiceAccountTokenProjection makes tokens live for an hour.
func SetDefaults_ServiceAccountTokenProjection(obj *corev1.ServiceAccountTokenProjection) {
	setIfNil(&obj.ExpirationSeconds, 60*60)
}

// SetDefaults_PersistentVolumeClaimSpec asks for a volume with a filesystem,
// where an ephemeral volume does not say.
func SetDefaults_PersistentVolumeClaimSpec(obj *corev1.PersistentVolumeClaimSpec) {
	setIfNil(&obj.VolumeMode, corev1.PersistentVolumeFilesystem)
}

func setIfNil[T any](field **T, value T) {
	if *field == nil {
		*field = &value
	}
}
