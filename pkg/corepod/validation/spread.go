// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

func validateTopologySpreadConstraints(constraints []corev1.TopologySpreadConstraint, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	type pair struct {
		topologyKey       string
		whenUnsatisfiable corev1.UnsatisfiableConstraintAction
	}
	last := map[pair]int{}
	for i, c := range constraints {
		last[pair{c.TopologyKey, c.WhenUnsatisfiable}] = i
	}
	for i := range constraints {
		c, path := &constraints[i], path.Index(i)
		errs = append(errs, validatePositive(c.MaxSkew, path.Child("maxSkew"))...)
		if c.TopologyKey == "" {
			errs = append(errs, field.Required(path.Child("topologyKey"), "can not be empty"))
		}
		errs = append(errs, supported(path.Child("whenUnsatisfiable"), c.WhenUnsatisfiable,
			corev1.DoNotSchedule, corev1.ScheduleAnyway)...)
		if last[pair{c.TopologyKey, c.WhenUnsatisfiable}] > i {
			errs = append(errs, field.Duplicate(path.Child("{topologyKey, whenUnsatisfiable}"),
				fmt.Sprintf("{%v, %v}", c.TopologyKey, c.WhenUnsatisfiable)))
		}
		if c.MinDomains != nil {
			path := path.Child("minDomains")
			errs = append(errs, validatePositive(*c.MinDomains, path)...)
			if c.WhenUnsatisfiable != corev1.DoNotSchedule {
				errs = append(errs, field.Invalid(path, *c.MinDomains,
					fmt.Sprintf("can only use minDomains if whenUnsatisfiable=%s, not %s", corev1.DoNotSchedule, c.WhenUnsatisfiable)))
			}
		}
		errs = append(errs, validateNodeInclusionPolicy(c.NodeAffinityPolicy, path.Child("nodeAffinityPolicy"))...)
		errs = append(errs, validateNodeInclusionPolicy(c.NodeTaintsPolicy, path.Child("nodeTaintsPolicy"))...)
		errs = append(errs, validateMatchLabelKeys(c.MatchLabelKeys, nil, c.LabelSelector, path)...)
		errs = append(errs, validateLabelSelector(c.LabelSelector, path.Child("labelSelector"))...)
	}
	return errs
}

func validatePositive(n int32, path *field.Path) field.ErrorList {
	if n > 0 {
		return nil
	}
	return field.ErrorList{field.Invalid(path, n, "must be greater than zero")}
}

func validateNodeInclusionPolicy(policy *corev1.NodeInclusionPolicy, path *field.Path) field.ErrorList {
	if policy == nil {
		return nil
	}
	return supported(path, *policy, corev1.NodeInclusionPolicyHonor, corev1.NodeInclusionPolicyIgnore)
}
