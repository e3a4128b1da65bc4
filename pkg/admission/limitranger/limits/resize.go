// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package limits

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// CheckResize is Check for a Pod that is there already. What the resize leaves as
// it was is not held against it, though a LimitRange that came later forbids it:
// of a container the request and the limit of a resource, of the whole Pod its
// totals of a resource.
func (s *Set) CheckResize(spec, old *corev1.PodSpec) []error {
	var found violations
	check := func(containers, olds []corev1.Container, position int) {
		for i := range containers {
			before := &corev1.Container{}
			if at := slices.IndexFunc(olds, func(c corev1.Container) bool { return c.Name == containers[i].Name }); at >= 0 {
				before = &olds[at]
			}
			found.checkResized(s.perContainer, &containers[i], before, position+i)
		}
	}
	check(spec.Containers, old.Containers, 0)
	check(spec.InitContainers, old.InitContainers, len(spec.Containers))
	for i := range s.perPod {
		r := &s.perPod[i]
		u, before := podUsage(spec, r.resource), podUsage(old, r.resource)
		if !u.equal(&before) {
			found.check(r, &u, 0)
		}
	}
	return found.errors()
}

func (v *violations) checkResized(all []resourceBounds, c, before *corev1.Container, position int) {
	for i := range all {
		r := &all[i]
		var u, was usage
		u.read(&c.Resources, r.resource)
		was.read(&before.Resources, r.resource)
		if !u.equal(&was) {
			v.check(r, &u, position)
		}
	}
}

func (u *usage) equal(other *usage) bool {
	return u.request.equal(&other.request) && u.limit.equal(&other.limit)
}

func (s *specified) equal(other *specified) bool {
	return s.found == other.found && s.quantity.Cmp(other.quantity) == 0
}
