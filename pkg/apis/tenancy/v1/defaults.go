// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package v1

import (
	"maps"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/borough-io/borough/pkg/corepod/defaults"
)

func addDefaultingFuncs(scheme *runtime.Scheme) error {
	return RegisterDefaults(scheme)
}

// SetDefaults_Namespace keeps the label that names the Namespace, so that it
// can be selected by name. A generated name is not known here yet; the
// namespace strategy sets the label again after it.
func SetDefaults_Namespace(obj *Namespace) {
	if obj.Name == "" || obj.Labels[corev1.LabelMetadataName] == obj.Name {
		return
	}
	labels := maps.Clone(obj.Labels)
	if labels == nil {
		labels = map[string]string{}
	}
	labels[corev1.LabelMetadataName] = obj.Name
	obj.Labels = labels
}

// SetDefaults_NamespaceStatus sets the phase Active if there is none.
func SetDefaults_NamespaceStatus(obj *NamespaceStatus) {
	if obj.Phase == "" {
		obj.Phase = NamespaceActive
	}
}

// SetDefaults_Pod sets what depends on more than one part of the Pod. The defaults
// of its parts are those of the types of core/v1.
func SetDefaults_Pod(obj *Pod) {
	defaults.SetDefaults_Pod((*corev1.Pod)(obj))
}
