// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package tenancy

import (
	"maps"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func (m *TemplateMetadata) objectMeta(namespace string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Name: m.Name, Namespace: namespace, Labels: maps.Clone(m.Labels), Annotations: maps.Clone(m.Annotations)}
}

// In returns the LimitRange in a Namespace, or nil.
func (t *LimitRangeTemplate) In(namespace string) *LimitRange {
	if t == nil {
		return nil
	}
	return &LimitRange{ObjectMeta: t.Metadata.objectMeta(namespace), Spec: *t.Spec.DeepCopy()}
}

// In returns the ResourceQuota in a Namespace, or nil.
func (t *ResourceQuotaTemplate) In(namespace string) *ResourceQuota {
	if t == nil {
		return nil
	}
	return &ResourceQuota{ObjectMeta: t.Metadata.objectMeta(namespace), Spec: *t.Spec.DeepCopy()}
}

// In returns the RoleBinding in a Namespace, or nil.
func (t *RoleBindingTemplate) In(namespace string) *rbacv1.RoleBinding {
	if t == nil {
		return nil
	}
	return &rbacv1.RoleBinding{ObjectMeta: t.Metadata.objectMeta(namespace), Subjects: append([]rbacv1.Subject(nil), t.Subjects...), RoleRef: t.RoleRef}
}
