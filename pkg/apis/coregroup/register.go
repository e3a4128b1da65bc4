// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package coregroup

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"

	"github.com/borough-io/borough/pkg/apis/tenancy"
	v1 "github.com/borough-io/borough/pkg/apis/tenancy/v1"
)

// Install registers the kinds of core/v1 with their defaults and conversions. The scheme
// has to have our group.
func Install(scheme *runtime.Scheme) {
	scheme.AddKnownTypes(corev1.SchemeGroupVersion,
		&corev1.Namespace{}, &corev1.NamespaceList{},
		&corev1.LimitRange{}, &corev1.LimitRangeList{},
		&corev1.ResourceQuota{}, &corev1.ResourceQuotaList{},
		&corev1.Pod{}, &corev1.PodList{},
		&corev1.Binding{},
	)
	// The internal types are those of our group.
	scheme.AddKnownTypes(schema.GroupVersion{Group: GroupName, Version: runtime.APIVersionInternal},
		&tenancy.Namespace{}, &tenancy.NamespaceList{},
		&tenancy.LimitRange{}, &tenancy.LimitRangeList{},
		&tenancy.ResourceQuota{}, &tenancy.ResourceQuotaList{},
		&tenancy.Pod{}, &tenancy.PodList{},
		&tenancy.Binding{},
	)
	metav1.AddToGroupVersion(scheme, corev1.SchemeGroupVersion)
	utilruntime.Must(scheme.SetVersionPriority(corev1.SchemeGroupVersion))
	addDefaults(scheme)
	utilruntime.Must(addConversions(scheme))
	utilruntime.Must(v1.AddFieldLabelConversions(scheme, corev1.SchemeGroupVersion))
}

// addDefaults adds the defaults of our kinds. The types are the same but for tags.
func addDefaults(scheme *runtime.Scheme) {
	scheme.AddTypeDefaultingFunc(&corev1.Namespace{}, func(obj any) { setNamespaceDefaults(obj.(*corev1.Namespace)) })
	scheme.AddTypeDefaultingFunc(&corev1.LimitRange{}, func(obj any) {
		v1.SetObjectDefaults_LimitRange((*v1.LimitRange)(obj.(*corev1.LimitRange)))
	})
	scheme.AddTypeDefaultingFunc(&corev1.ResourceQuota{}, func(obj any) {
		v1.SetObjectDefaults_ResourceQuota((*v1.ResourceQuota)(obj.(*corev1.ResourceQuota)))
	})
	scheme.AddTypeDefaultingFunc(&corev1.Pod{}, func(obj any) { v1.SetObjectDefaults_Pod((*v1.Pod)(obj.(*corev1.Pod))) })
}

func setNamespaceDefaults(namespace *corev1.Namespace) {
	// Neither default depends on what only our Namespaces have.
	own := v1.Namespace{ObjectMeta: namespace.ObjectMeta, Status: v1.NamespaceStatus{Phase: v1.NamespacePhase(namespace.Status.Phase)}}
	v1.SetObjectDefaults_Namespace(&own)
	namespace.ObjectMeta, namespace.Status.Phase = own.ObjectMeta, corev1.NamespacePhase(own.Status.Phase)
}
