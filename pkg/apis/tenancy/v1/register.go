// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package v1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupName is the API group that Borough serves.
const GroupName = "tenancy.borough.io"

// SchemeGroupVersion is the group version of the types in this package.
var SchemeGroupVersion = schema.GroupVersion{Group: GroupName, Version: "v1"}

var (
	// SchemeBuilder collects what AddToScheme registers. The generated
	// conversions add themselves to it.
	SchemeBuilder      = runtime.NewSchemeBuilder(addKnownTypes, addDefaultingFuncs, addFieldLabelConversions)
	localSchemeBuilder = &SchemeBuilder

	// AddToScheme registers the v1 types, their defaults, their conversions and
	// the field labels that they can be selected by.
	AddToScheme = localSchemeBuilder.AddToScheme
)

// Resource returns the GroupResource of a resource in this group.
func Resource(resource string) schema.GroupResource {
	return SchemeGroupVersion.WithResource(resource).GroupResource()
}

func addKnownTypes(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(SchemeGroupVersion,
		&Namespace{}, &NamespaceList{},
		&NamespaceTemplate{}, &NamespaceTemplateList{},
		&LimitRange{}, &LimitRangeList{},
		&ResourceQuota{}, &ResourceQuotaList{},
		&Pod{}, &PodList{},
		&Binding{},
		&NamespacePurge{},
		&NamespaceRequest{},
		&Project{}, &ProjectList{},
	)
	metav1.AddToGroupVersion(scheme, SchemeGroupVersion)
	return nil
}
