// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package tenancy

import (
	"maps"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// SetAnnotation sets an annotation in a copy of the map, which another object may share.
func SetAnnotation(object *metav1.ObjectMeta, key, value string) {
	annotations := maps.Clone(object.Annotations)
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[key] = value
	object.Annotations = annotations
}
