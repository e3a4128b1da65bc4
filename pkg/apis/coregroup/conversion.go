// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package coregroup

import (
	"cmp"
	"unsafe"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/borough-io/borough/pkg/apis/convert"
	"github.com/borough-io/borough/pkg/apis/tenancy"
)

// addConversions adds the conversions.
func addConversions(scheme *runtime.Scheme) error {
	// Go converts types that differ only in tags.
	return cmp.Or(
		kind[corev1.Namespace, tenancy.Namespace, corev1.NamespaceList, tenancy.NamespaceList]{
			toOwn: namespaceToOwn, fromOwn: NamespaceFromOwn,
			list:    func(l *corev1.NamespaceList) (*metav1.ListMeta, *[]corev1.Namespace) { return &l.ListMeta, &l.Items },
			ownList: func(l *tenancy.NamespaceList) (*metav1.ListMeta, *[]tenancy.Namespace) { return &l.ListMeta, &l.Items },
		}.add(scheme),
		kind[corev1.LimitRange, tenancy.LimitRange, corev1.LimitRangeList, tenancy.LimitRangeList]{
			toOwn:   func(in *corev1.LimitRange, out *tenancy.LimitRange) { *out = tenancy.LimitRange(*in) },
			fromOwn: func(in *tenancy.LimitRange, out *corev1.LimitRange) { *out = corev1.LimitRange(*in) },
			list:    func(l *corev1.LimitRangeList) (*metav1.ListMeta, *[]corev1.LimitRange) { return &l.ListMeta, &l.Items },
			ownList: func(l *tenancy.LimitRangeList) (*metav1.ListMeta, *[]tenancy.LimitRange) {
				return &l.ListMeta, &l.Items
			},
		}.add(scheme),
		kind[corev1.ResourceQuota, tenancy.ResourceQuota, corev1.ResourceQuotaList, tenancy.ResourceQuotaList]{
			toOwn:   func(in *corev1.ResourceQuota, out *tenancy.ResourceQuota) { *out = tenancy.ResourceQuota(*in) },
			fromOwn: func(in *tenancy.ResourceQuota, out *corev1.ResourceQuota) { *out = corev1.ResourceQuota(*in) },
			list: func(l *corev1.ResourceQuotaList) (*metav1.ListMeta, *[]corev1.ResourceQuota) {
				return &l.ListMeta, &l.Items
			},
			ownList: func(l *tenancy.ResourceQuotaList) (*metav1.ListMeta, *[]tenancy.ResourceQuota) {
				return &l.ListMeta, &l.Items
			},
		}.add(scheme),
		kind[corev1.Pod, tenancy.Pod, corev1.PodList, tenancy.PodList]{
			toOwn:   func(in *corev1.Pod, out *tenancy.Pod) { *out = tenancy.Pod(*in) },
			fromOwn: func(in *tenancy.Pod, out *corev1.Pod) { *out = corev1.Pod(*in) },
			items:   func(items []tenancy.Pod) []corev1.Pod { return *(*[]corev1.Pod)(unsafe.Pointer(&items)) },
			list:    func(l *corev1.PodList) (*metav1.ListMeta, *[]corev1.Pod) { return &l.ListMeta, &l.Items },
			ownList: func(l *tenancy.PodList) (*metav1.ListMeta, *[]tenancy.Pod) { return &l.ListMeta, &l.Items },
		}.add(scheme),
		convert.Add(scheme, func(in *corev1.Binding, out *tenancy.Binding) { *out = tenancy.Binding(*in) }),
		convert.Add(scheme, func(in *tenancy.Binding, out *corev1.Binding) { *out = corev1.Binding(*in) }),
	)
}

// kind converts objects and lists between the types of core/v1 and the internal ones of
// our group.
type kind[Core, Own, CoreList, OwnList any] struct {
	toOwn   func(*Core, *Own)
	fromOwn func(*Own, *Core)
	// list and ownList return the metadata and the items of a list.
	list    func(*CoreList) (*metav1.ListMeta, *[]Core)
	ownList func(*OwnList) (*metav1.ListMeta, *[]Own)
	// items, if not nil, returns items that differ only in their type from those of our
	// group. They share their memory, as with generated conversions.
	items func([]Own) []Core
}

func (k kind[Core, Own, CoreList, OwnList]) add(scheme *runtime.Scheme) error {
	// The managed fields stay in the version of core/v1: in a patch, the library compares
	// the object that it has converted with the current one. What is written has those of
	// [UpdatedObjectInfo] or, if it is new, of admission.
	toOwn := k.toOwn
	fromOwn := func(in *Own, out *Core) {
		k.fromOwn(in, out)
		object := any(out).(metav1.Object)
		object.SetManagedFields(coreManagedFields(object.GetManagedFields()))
	}
	return cmp.Or(
		convert.Add(scheme, toOwn),
		convert.Add(scheme, fromOwn),
		convert.Add(scheme, func(in *CoreList, out *OwnList) {
			listMeta, items := k.list(in)
			ownMeta, ownItems := k.ownList(out)
			*ownMeta, *ownItems = *listMeta, convert.Slice(*items, toOwn)
		}),
		convert.Add(scheme, func(in *OwnList, out *CoreList) {
			ownMeta, ownItems := k.ownList(in)
			listMeta, items := k.list(out)
			*listMeta = *ownMeta
			if k.items != nil && !haveOwnVersion(*ownItems) {
				*items = k.items(*ownItems)
				return
			}
			*items = convert.Slice(*ownItems, fromOwn)
		}),
	)
}

// haveOwnVersion reports whether managed fields of the items are in the version of our
// group.
func haveOwnVersion[T any](items []T) bool {
	for i := range items {
		if haveVersion(any(&items[i]).(metav1.Object).GetManagedFields(), ownVersion) {
			return true
		}
	}
	return false
}

func namespaceToOwn(in *corev1.Namespace, out *tenancy.Namespace) {
	*out = tenancy.Namespace{
		ObjectMeta: in.ObjectMeta,
		Spec: tenancy.NamespaceSpec{
			Finalizers: convert.Slice(in.Spec.Finalizers, func(f *corev1.FinalizerName, out *tenancy.FinalizerName) { *out = tenancy.FinalizerName(*f) }),
		},
		Status: tenancy.NamespaceStatus{
			Phase: tenancy.NamespacePhase(in.Status.Phase),
			Conditions: convert.Slice(in.Status.Conditions, func(c *corev1.NamespaceCondition, out *tenancy.NamespaceCondition) {
				*out = tenancy.NamespaceCondition{
					Type: tenancy.NamespaceConditionType(c.Type), Status: c.Status,
					LastTransitionTime: c.LastTransitionTime, Reason: c.Reason, Message: c.Message,
				}
			}),
		},
	}
}

// NamespaceFromOwn converts a Namespace, and leaves out what core/v1 does not have.
func NamespaceFromOwn(in *tenancy.Namespace, out *corev1.Namespace) {
	*out = corev1.Namespace{
		ObjectMeta: in.ObjectMeta,
		Spec: corev1.NamespaceSpec{
			Finalizers: convert.Slice(in.Spec.Finalizers, func(f *tenancy.FinalizerName, out *corev1.FinalizerName) { *out = corev1.FinalizerName(*f) }),
		},
		Status: corev1.NamespaceStatus{
			Phase: corev1.NamespacePhase(in.Status.Phase),
			Conditions: convert.Slice(in.Status.Conditions, func(c *tenancy.NamespaceCondition, out *corev1.NamespaceCondition) {
				*out = corev1.NamespaceCondition{
					Type: corev1.NamespaceConditionType(c.Type), Status: c.Status,
					LastTransitionTime: c.LastTransitionTime, Reason: c.Reason, Message: c.Message,
				}
			}),
		},
	}
}
