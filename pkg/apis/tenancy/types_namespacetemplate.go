// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package tenancy

import (
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// NamespaceTemplate is the content that new Namespaces are created with.
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
type NamespaceTemplate struct {
	metav1.TypeMeta
	metav1.ObjectMeta

	Spec NamespaceTemplateSpec
}

// NamespaceTemplateSpec is the content of a NamespaceTemplate, and the Namespaces that it
// is for.
type NamespaceTemplateSpec struct {
	// NamespaceSelector is nil in a default template.
	NamespaceSelector *metav1.LabelSelector

	LimitRange    *LimitRangeTemplate
	ResourceQuota *ResourceQuotaTemplate
	RoleBinding   *RoleBindingTemplate
}

// TemplateMetadata is the metadata of an object that a NamespaceTemplate creates.
type TemplateMetadata struct {
	Name        string
	Labels      map[string]string
	Annotations map[string]string
}

// LimitRangeTemplate is a LimitRange of a NamespaceTemplate.
type LimitRangeTemplate struct {
	Metadata TemplateMetadata
	Spec     corev1.LimitRangeSpec
}

// ResourceQuotaTemplate is a ResourceQuota of a NamespaceTemplate.
type ResourceQuotaTemplate struct {
	Metadata TemplateMetadata
	Spec     corev1.ResourceQuotaSpec
}

// RoleBindingTemplate is a RoleBinding of a NamespaceTemplate.
type RoleBindingTemplate struct {
	Metadata TemplateMetadata
	Subjects []rbacv1.Subject
	RoleRef  rbacv1.RoleRef
}

// NamespaceTemplateList is a list of NamespaceTemplates.
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
type NamespaceTemplateList struct {
	metav1.TypeMeta
	metav1.ListMeta

	Items []NamespaceTemplate
}
