// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package limits

import (
	corev1 "k8s.io/api/core/v1"
)

// LimitRanges apply only to the values that a resize changes. Unchanged values get no
// defaults and are not checked, even if they violate a LimitRange that was created
// after the Pod. For a container, the values of a resource are its request and limit,
// and for the whole Pod its totals.

// SetResizeDefaults is SetDefaults for the resize of a Pod. It returns an error if
// there are more than 100,000 defaults to consider.
func (s *Set) SetResizeDefaults(spec, old *corev1.PodSpec) (string, error) {
	if err := affordable(spec, len(s.defaultRequests)+len(s.defaultLimits), "defaults"); err != nil {
		return "", err
	}
	var text []byte
	left := maxDefaults
	set := func(containers []corev1.Container, olds map[string]*corev1.Container, kind string) {
		for i := range containers {
			c := &containers[i]
			text = s.fillContainer(c, named(olds, c.Name), kind, text, &left)
		}
	}
	set(spec.Containers, byName(old.Containers), "container ")
	set(spec.InitContainers, byName(old.InitContainers), "init container ")
	if left < 0 {
		return "", s.tooManyDefaults(spec)
	}
	return string(text), nil
}

// CheckResize is Check for the resize of a Pod.
func (s *Set) CheckResize(spec, old *corev1.PodSpec) []error {
	if err := affordable(spec, s.boundCount, "bounds"); err != nil {
		return []error{err}
	}
	found := newViolations()
	check := func(containers []corev1.Container, olds map[string]*corev1.Container, position int) {
		for i := range containers {
			c := &containers[i]
			before := named(olds, c.Name)
			for _, r := range s.perContainer {
				if resized(c, before, r.resource()) {
					var u usage
					u.read(&c.Resources, r.resource())
					found.check(r, &u, position+i)
				}
			}
		}
	}
	check(spec.Containers, byName(old.Containers), 0)
	check(spec.InitContainers, byName(old.InitContainers), len(spec.Containers))
	for _, r := range s.perPod {
		u, before := podUsage(spec, r.resource()), podUsage(old, r.resource())
		if !u.equal(&before) {
			found.check(r, &u, 0)
		}
	}
	return found.errors()
}

// resizedOf returns the defaults of the resources whose amounts in the container have
// changed.
func resizedOf(defaults []defaultValue, c, before *corev1.Container) []defaultValue {
	var of []defaultValue
	for _, d := range defaults {
		if resized(c, before, d.resource) {
			of = append(of, d)
		}
	}
	return of
}

// resized reports whether the amounts of the resource in the container have changed.
func resized(c, before *corev1.Container, name corev1.ResourceName) bool {
	var u, was usage
	u.read(&c.Resources, name)
	was.read(&before.Resources, name)
	return !u.equal(&was)
}

func byName(containers []corev1.Container) map[string]*corev1.Container {
	byName := make(map[string]*corev1.Container, len(containers))
	for i := range containers {
		byName[containers[i].Name] = &containers[i]
	}
	return byName
}

// named returns the container with the name, or an empty container.
func named(byName map[string]*corev1.Container, name string) *corev1.Container {
	if found := byName[name]; found != nil {
		return found
	}
	return &corev1.Container{}
}

func (u *usage) equal(other *usage) bool {
	return u.request.equal(&other.request) && u.limit.equal(&other.limit)
}

func (s *specified) equal(other *specified) bool {
	return s.found == other.found && s.quantity.Cmp(other.quantity) == 0
}
