// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package corepod

import (
	"math"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// KeepExact makes sums of quantities be read as they were written. Of large ones, the
// library reads only those with an exponent exactly: it reads 9Ei as 2^63-1, and writes
// 1000E as 1.
func KeepExact(sums corev1.ResourceList) {
	for name, quantity := range sums {
		if quantity.CmpInt64(math.MaxInt64) > 0 || quantity.CmpInt64(math.MinInt64) < 0 {
			quantity.Format = resource.DecimalExponent
			sums[name] = quantity
		}
	}
}
