// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package tenancy

import (
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupName is the API group that Borough serves.
const GroupName = "tenancy.borough.io"

// SchemeGroupVersion is the internal group version of the group.
var SchemeGroupVersion = schema.GroupVersion{Group: GroupName, Version: runtime.APIVersionInternal}

// Kind returns the GroupKind of a kind in this group.
func Kind(kind string) schema.GroupKind {
	return SchemeGroupVersion.WithKind(kind).GroupKind()
}

// Resource returns the GroupResource of a resource in this group.
func Resource(resource string) schema.GroupResource {
	return SchemeGroupVersion.WithResource(resource).GroupResource()
}

// AddToScheme registers the internal types.
func AddToScheme(scheme *runtime.Scheme) error {
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
	return nil
}
