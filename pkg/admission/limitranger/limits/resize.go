// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package limits

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// A resize answers for what it changes. What it leaves as it was gets no defaults
// and is not held against it, though a LimitRange that came later asks for others:
// of a container the request and the limit of a resource, of the whole Pod its
// totals of a resource.

// SetResizeDefaults is SetDefaults for a Pod that is there already.
func (s *Set) SetResizeDefaults(spec, old *corev1.PodSpec) string {
	var text []byte
	set := func(containers, olds []corev1.Container, kind string) {
		for i := range containers {
			c, before := &containers[i], named(olds, containers[i].Name)
			changed := func(defaults []defaultValue) (of []defaultValue) {
				for _, d := range defaults {
					if resized(c, before, d.resource) {
						of = append(of, d)
					}
				}
				return of
			}
			defaults := Set{defaultRequests: changed(s.defaultRequests), defaultLimits: changed(s.defaultLimits)}
			text = defaults.setDefaultsOf(c, kind, text)
		}
	}
	set(spec.Containers, old.Containers, "container ")
	set(spec.InitContainers, old.InitContainers, "init container ")
	return string(text)
}

// CheckResize is Check for a Pod that is there already.
func (s *Set) CheckResize(spec, old *corev1.PodSpec) []error {
	var found violations
	check := func(containers, olds []corev1.Container, position int) {
		for i := range containers {
			c, before := &containers[i], named(olds, containers[i].Name)
			for j := range s.perContainer {
				r := &s.perContainer[j]
				if resized(c, before, r.resource) {
					var u usage
					u.read(&c.Resources, r.resource)
					found.check(r, &u, position+i)
				}
			}
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

// resized says whether the container has other amounts of the resource than
// before.
func resized(c, before *corev1.Container, name corev1.ResourceName) bool {
	var u, was usage
	u.read(&c.Resources, name)
	was.read(&before.Resources, name)
	return !u.equal(&was)
}

// named returns the container of that name, or one that asks for nothing.
func named(containers []corev1.Container, name string) *corev1.Container {
	at := slices.IndexFunc(containers, func(c corev1.Container) bool { return c.Name == name })
	if at < 0 {
		return &corev1.Container{}
	}
	return &containers[at]
}

func (u *usage) equal(other *usage) bool {
	return u.request.equal(&other.request) && u.limit.equal(&other.limit)
}

func (s *specified) equal(other *specified) bool {
	return s.found == other.found && s.quantity.Cmp(other.quantity) == 0
}
