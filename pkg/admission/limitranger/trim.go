// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package limitranger

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/lru"

	v1 "github.com/borough-io/borough/pkg/apis/tenancy/v1"
)

const (
	// maxSpecs is the number of different specs of LimitRanges that are shared.
	maxSpecs = 1_000
	// maxSpecSize is the size in bytes of the largest spec that is shared.
	maxSpecSize = 2 << 10
)

// trimmer makes the LimitRanges of the informer smaller.
type trimmer struct {
	specs *lru.Cache // by their encoded form
}

func newTrimmer() *trimmer { return &trimmer{lru.New(maxSpecs)} }

// trim removes the metadata that is not used. LimitRanges with equal specs share one: where
// Namespaces are made from a template, most are equal.
func (t *trimmer) trim(obj any) (any, error) {
	limitRange, ok := obj.(*v1.LimitRange)
	if !ok {
		return obj, nil
	}
	trimMetadata(limitRange)
	if limitRange.Spec.Size() > maxSpecSize {
		return limitRange, nil // specs are kept after their LimitRanges are deleted
	}
	encoded, err := limitRange.Spec.Marshal()
	if err != nil {
		return limitRange, nil // it is decided by as it is
	}
	if spec, known := t.specs.Get(string(encoded)); known {
		limitRange.Spec = spec.(corev1.LimitRangeSpec)
	} else {
		t.specs.Add(string(encoded), limitRange.Spec)
	}
	return limitRange, nil
}

// trimMetadata removes what is not used, and can be most of an object.
func trimMetadata(limitRange *v1.LimitRange) {
	limitRange.ManagedFields, limitRange.Annotations, limitRange.Labels = nil, nil, nil
}
