// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package v1

import (
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// +genclient
// +genclient:nonNamespaced
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// NamespaceTemplate is the content that new Namespaces are created with, in the same
// transaction. At most one template applies to a Namespace. A change of a template
// changes nothing in Namespaces that exist.
type NamespaceTemplate struct {
	metav1.TypeMeta `json:",inline"`
	// Standard object's metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty" protobuf:"bytes,1,opt,name=metadata"`

	// Spec is the content, and the Namespaces that it is for.
	// +optional
	Spec NamespaceTemplateSpec `json:"spec,omitempty" protobuf:"bytes,2,opt,name=spec"`
}

// NamespaceTemplateSpec is the content of a NamespaceTemplate, and the Namespaces that it
// is for.
type NamespaceTemplateSpec struct {
	// NamespaceSelector selects the new Namespaces that the template is for, by their
	// labels. Without it, the template is the default: it is for those that no template
	// with a selector selects. A Namespace is refused if two templates with a selector
	// select it, or if there are two defaults and no other template selects it.
	// +optional
	NamespaceSelector *metav1.LabelSelector `json:"namespaceSelector,omitempty" protobuf:"bytes,1,opt,name=namespaceSelector"`

	// LimitRange is created in the Namespace.
	// +optional
	LimitRange *LimitRangeTemplate `json:"limitRange,omitempty" protobuf:"bytes,2,opt,name=limitRange"`

	// ResourceQuota is created in the Namespace.
	// +optional
	ResourceQuota *ResourceQuotaTemplate `json:"resourceQuota,omitempty" protobuf:"bytes,3,opt,name=resourceQuota"`

	// RoleBinding is created in the Namespace. Only a standalone server supports it. A
	// user who writes the template must hold the rights of the role, or the verb bind on
	// it, in all Namespaces.
	// +optional
	RoleBinding *RoleBindingTemplate `json:"roleBinding,omitempty" protobuf:"bytes,4,opt,name=roleBinding"`
}

// TemplateMetadata is the metadata of an object that a NamespaceTemplate creates.
type TemplateMetadata struct {
	// Name is the name of the object.
	Name string `json:"name" protobuf:"bytes,1,opt,name=name"`

	// Labels are the labels of the object.
	// +optional
	Labels map[string]string `json:"labels,omitempty" protobuf:"bytes,2,rep,name=labels"`

	// Annotations are the annotations of the object.
	// +optional
	Annotations map[string]string `json:"annotations,omitempty" protobuf:"bytes,3,rep,name=annotations"`
}

// LimitRangeTemplate is a LimitRange of a NamespaceTemplate.
type LimitRangeTemplate struct {
	// Metadata is the metadata of the LimitRange.
	Metadata TemplateMetadata `json:"metadata" protobuf:"bytes,1,opt,name=metadata"`

	// Spec is the spec of the LimitRange.
	// +optional
	Spec corev1.LimitRangeSpec `json:"spec,omitempty" protobuf:"bytes,2,opt,name=spec"`
}

// ResourceQuotaTemplate is a ResourceQuota of a NamespaceTemplate.
type ResourceQuotaTemplate struct {
	// Metadata is the metadata of the ResourceQuota.
	Metadata TemplateMetadata `json:"metadata" protobuf:"bytes,1,opt,name=metadata"`

	// Spec is the spec of the ResourceQuota.
	// +optional
	Spec corev1.ResourceQuotaSpec `json:"spec,omitempty" protobuf:"bytes,2,opt,name=spec"`
}

// RoleBindingTemplate is a RoleBinding of a NamespaceTemplate.
type RoleBindingTemplate struct {
	// Metadata is the metadata of the RoleBinding. The name must not be
	// admin: that is the name of the RoleBinding that a NamespaceRequest creates.
	Metadata TemplateMetadata `json:"metadata" protobuf:"bytes,1,opt,name=metadata"`

	// Subjects are the users, groups and service accounts that the role is bound to.
	// +optional
	// +listType=atomic
	Subjects []rbacv1.Subject `json:"subjects,omitempty" protobuf:"bytes,2,rep,name=subjects"`

	// RoleRef is the Role in the Namespace, or the ClusterRole, that is bound.
	RoleRef rbacv1.RoleRef `json:"roleRef" protobuf:"bytes,3,opt,name=roleRef"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// NamespaceTemplateList is a list of NamespaceTemplates.
type NamespaceTemplateList struct {
	metav1.TypeMeta `json:",inline"`
	// Standard list metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty" protobuf:"bytes,1,opt,name=metadata"`

	// Items are the NamespaceTemplates.
	Items []NamespaceTemplate `json:"items" protobuf:"bytes,2,rep,name=items"`
}
