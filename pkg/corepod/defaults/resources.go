// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package defaults

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// SetDefaults_ResourceList rounds quantities up to thousandths, the finest step
// in which resources are counted. It applies to every ResourceList, those of
// LimitRanges included.
func SetDefaults_ResourceList(obj *corev1.ResourceList) {
	for name, quantity := range *obj {
		if exact := quantity.RoundUp(resource.Milli); !exact {
			(*obj)[name] = quantity
		}
	}
}

// FillMissing copies into list what only from has.
func FillMissing(list *corev1.ResourceList, from corev1.ResourceList) {
	for name, quantity := range from {
		if _, found := (*list)[name]; found {
			continue
		}
		if *list == nil {
			*list = make(corev1.ResourceList, len(from))
		}
		(*list)[name] = quantity.DeepCopy()
	}
}
