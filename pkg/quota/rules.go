// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package quota

import (
	"maps"

	"github.com/borough-io/borough/pkg/apis/tenancy"
)

// Rules is the version of the rules by which this package computes usage. It has to be raised
// when objects that are stored use something else than before: the usage of a quota changes by
// differences, which are right only if all of it was computed by the same rules. A quota of
// another version is counted again before it is charged, so servers of two versions can write
// at the same time.
const Rules = "3"

// SetRules sets the version of the rules by which the usage of a quota was computed. Without
// one, it removes the annotation.
func SetRules(quota *tenancy.ResourceQuota, version string) {
	const key = tenancy.UsageRulesAnnotation
	current, set := quota.Annotations[key]
	switch {
	case version != "" && current != version:
		tenancy.SetAnnotation(&quota.ObjectMeta, key, version)
	case version == "" && set:
		quota.Annotations = maps.Clone(quota.Annotations) // another quota may share them
		delete(quota.Annotations, key)
	}
}
