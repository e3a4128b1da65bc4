// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package v1

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/borough-io/borough/pkg/corepod/defaults"
)

// SetDefaults_LimitRangeItem completes the defaults that limits on containers
// give: a missing default is the max, a missing defaultRequest the default, or
// else the min. Other types of limits have no defaults.
func SetDefaults_LimitRangeItem(obj *corev1.LimitRangeItem) {
	if obj.Type != corev1.LimitTypeContainer {
		return
	}
	defaults.FillMissing(&obj.Default, obj.Max)
	defaults.FillMissing(&obj.DefaultRequest, obj.Default)
	defaults.FillMissing(&obj.DefaultRequest, obj.Min)
}
