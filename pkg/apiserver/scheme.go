// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/borough-io/borough/pkg/apis/coregroup"
	"github.com/borough-io/borough/pkg/apis/kubernetes"
	"github.com/borough-io/borough/pkg/apis/tenancy/install"
)

// NewScheme returns a scheme with all that the server reads and writes.
func NewScheme() *runtime.Scheme {
	scheme := runtime.NewScheme()
	install.Install(scheme)
	coregroup.Install(scheme)
	kubernetes.Install(scheme)

	// The library decodes options and encodes statuses in the version of the core
	// group, also in a cluster, where we do not serve that group.
	scheme.AddUnversionedTypes(corev1.SchemeGroupVersion,
		&metav1.Status{},
		&metav1.APIVersions{},
		&metav1.APIGroupList{},
		&metav1.APIGroup{},
		&metav1.APIResourceList{},
	)
	return scheme
}
