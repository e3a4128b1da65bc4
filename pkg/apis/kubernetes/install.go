// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

// Package kubernetes puts the API groups of Kubernetes that a standalone server
// serves into a scheme, with the types of k8s.io/api: RBAC, the reviews of
// authentication and authorization, Leases and Events. In a cluster, kube-apiserver
// serves them.
package kubernetes

import (
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"

	"github.com/borough-io/borough/pkg/apis/rbac/defaults"
)

// Install registers the groups with their defaults. The types of v1 are the internal
// types, too: only Events of events.k8s.io are converted, to those of the core group. It
// panics when the scheme already holds something else under these names.
func Install(scheme *runtime.Scheme) {
	for _, group := range []struct {
		version schema.GroupVersion
		types   []runtime.Object
	}{
		{rbacv1.SchemeGroupVersion, []runtime.Object{
			&rbacv1.Role{}, &rbacv1.RoleList{},
			&rbacv1.RoleBinding{}, &rbacv1.RoleBindingList{},
			&rbacv1.ClusterRole{}, &rbacv1.ClusterRoleList{},
			&rbacv1.ClusterRoleBinding{}, &rbacv1.ClusterRoleBindingList{},
		}},
		{authorizationv1.SchemeGroupVersion, []runtime.Object{
			&authorizationv1.SelfSubjectRulesReview{},
			&authorizationv1.SelfSubjectAccessReview{},
			&authorizationv1.SubjectAccessReview{},
			&authorizationv1.LocalSubjectAccessReview{},
		}},
		{authenticationv1.SchemeGroupVersion, []runtime.Object{
			&authenticationv1.TokenReview{},
			&authenticationv1.SelfSubjectReview{},
		}},
		{coordinationv1.SchemeGroupVersion, []runtime.Object{&coordinationv1.Lease{}, &coordinationv1.LeaseList{}}},
		{corev1.SchemeGroupVersion, []runtime.Object{&corev1.Event{}, &corev1.EventList{}}},
	} {
		scheme.AddKnownTypes(group.version, group.types...)
		scheme.AddKnownTypes(schema.GroupVersion{Group: group.version.Group, Version: runtime.APIVersionInternal}, group.types...)
		metav1.AddToGroupVersion(scheme, group.version)
		utilruntime.Must(scheme.SetVersionPriority(group.version))
	}
	scheme.AddKnownTypes(eventsv1.SchemeGroupVersion, &eventsv1.Event{}, &eventsv1.EventList{})
	scheme.AddKnownTypes(schema.GroupVersion{Group: eventsv1.GroupName, Version: runtime.APIVersionInternal}, &corev1.Event{}, &corev1.EventList{})
	metav1.AddToGroupVersion(scheme, eventsv1.SchemeGroupVersion)
	utilruntime.Must(scheme.SetVersionPriority(eventsv1.SchemeGroupVersion))
	utilruntime.Must(addEventConversions(scheme))
	utilruntime.Must(addEventFields(scheme))
	addDefaults(scheme)
}

// addDefaults registers the defaults of RBAC.
func addDefaults(scheme *runtime.Scheme) {
	setRoleBinding := func(b *rbacv1.RoleBinding) { defaults.SetBinding(&b.RoleRef, b.Subjects) }
	setClusterRoleBinding := func(b *rbacv1.ClusterRoleBinding) { defaults.SetBinding(&b.RoleRef, b.Subjects) }
	scheme.AddTypeDefaultingFunc(&rbacv1.RoleBinding{}, func(obj any) { setRoleBinding(obj.(*rbacv1.RoleBinding)) })
	scheme.AddTypeDefaultingFunc(&rbacv1.RoleBindingList{}, func(obj any) {
		items := obj.(*rbacv1.RoleBindingList).Items
		for i := range items {
			setRoleBinding(&items[i])
		}
	})
	scheme.AddTypeDefaultingFunc(&rbacv1.ClusterRoleBinding{}, func(obj any) { setClusterRoleBinding(obj.(*rbacv1.ClusterRoleBinding)) })
	scheme.AddTypeDefaultingFunc(&rbacv1.ClusterRoleBindingList{}, func(obj any) {
		items := obj.(*rbacv1.ClusterRoleBindingList).Items
		for i := range items {
			setClusterRoleBinding(&items[i])
		}
	})
}
