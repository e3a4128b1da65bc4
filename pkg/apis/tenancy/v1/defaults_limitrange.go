// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package v1

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// SetDefaults_LimitRangeItem completes the defaults that limits on containers
// give: a missing default is the max, a missing defaultRequest the default, or
// else the min. Other types of limits have no defaults.
func SetDefaults_LimitRangeItem(obj *corev1.LimitRangeItem) {
	if obj.Type != corev1.LimitTypeContainer {
		return
	}
	fillMissing(&obj.Default, obj.Max)
	fillMissing(&obj.DefaultRequest, obj.Default)
	fillMissing(&obj.DefaultRequest, obj.Min)
}

// SetDefaults_ResourceList rounds quantities up to thousandths, the finest step
// in which resources are counted. It applies to every ResourceList of the
// group, those of Pods included.
func SetDefaults_ResourceList(obj *corev1.ResourceList) {
	for name, quantity := range *obj {
		if exact := quantity.RoundUp(resource.Milli); !exact {
			(*obj)[name] = quantity
		}
	}
}

// fillMissing copies into list what only from has.
func fillMissing(list *corev1.ResourceList, from corev1.ResourceList) {
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
