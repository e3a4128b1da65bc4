// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package defaults

import (
	"github.com/distribution/reference"
	corev1 "k8s.io/api/core/v1"
)

// SetDefaults_Container sets how the image is pulled and where the termination message
// is read from.
func SetDefaults_Container(obj *corev1.Container) {
	if obj.ImagePullPolicy == "" {
		obj.ImagePullPolicy = defaultPullPolicy(obj.Image)
	}
	if obj.TerminationMessagePath == "" {
		obj.TerminationMessagePath = corev1.TerminationMessagePathDefault
	}
	if obj.TerminationMessagePolicy == "" {
		obj.TerminationMessagePolicy = corev1.TerminationMessageReadFile
	}
}

// SetDefaults_EphemeralContainer sets what is set for every container.
func SetDefaults_EphemeralContainer(obj *corev1.EphemeralContainer) {
	SetDefaults_Container((*corev1.Container)(&obj.EphemeralContainerCommon))
}

// SetDefaults_Probe sets how often a probe runs and how often it has to succeed
// or fail to count.
func SetDefaults_Probe(obj *corev1.Probe) {
	if obj.TimeoutSeconds == 0 {
		obj.TimeoutSeconds = 1
	}
	if obj.PeriodSeconds == 0 {
		obj.PeriodSeconds = 10
	}
	if obj.SuccessThreshold == 0 {
		obj.SuccessThreshold = 1
	}
	if obj.FailureThreshold == 0 {
		obj.FailureThreshold = 3
	}
}

// SetDefaults_HTTPGetAction makes a probe or a lifecycle hook get / over HTTP.
func SetDefaults_HTTPGetAction(obj *corev1.HTTPGetAction) {
	if obj.Path == "" {
		obj.Path = "/"
	}
	if obj.Scheme == "" {
		obj.Scheme = corev1.URISchemeHTTP
	}
}

// SetDefaults_ObjectFieldSelector names the version that the field path is of.
// It is that of core/v1, whose Pod ours is.
func SetDefaults_ObjectFieldSelector(obj *corev1.ObjectFieldSelector) {
	if obj.APIVersion == "" {
		obj.APIVersion = "v1"
	}
}

// defaultPullPolicy is Always for an image whose tag is or defaults to latest,
// and IfNotPresent otherwise. An image that is no valid reference cannot be
// pulled at all and has no tag.
func defaultPullPolicy(image string) corev1.PullPolicy {
	named, err := reference.ParseNormalizedNamed(image)
	if err != nil {
		return corev1.PullIfNotPresent
	}
	// TagNameOnly tags what has neither a tag nor a digest as latest.
	if tagged, ok := reference.TagNameOnly(named).(reference.Tagged); ok && tagged.Tag() == "latest" {
		return corev1.PullAlways
	}
	return corev1.PullIfNotPresent
}
