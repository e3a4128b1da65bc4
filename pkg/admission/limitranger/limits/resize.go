// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package limits

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/borough-io/borough/pkg/corepod"
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
	olds := byName(old)
	for kind, c := range corepod.ContainersWithResources(spec) {
		text = s.fillContainer(c, olds.get(kind, c.Name), kind, text, &left)
	}
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
	olds, position := byName(old), 0
	for kind, c := range corepod.ContainersWithResources(spec) {
		before := olds.get(kind, c.Name)
		for _, r := range s.perContainer {
			if resized(c, before, r.resource()) {
				var u usage
				u.read(&c.Resources, r.resource())
				found.check(r, &u, position)
			}
		}
		position++
	}
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

// containersByName are the containers of a Pod, by the list that they are in and by
// their names.
type containersByName map[containerKey]*corev1.Container

type containerKey struct {
	kind corepod.ContainerType
	name string
}

func byName(spec *corev1.PodSpec) containersByName {
	all := make(containersByName, containerCount(spec))
	for kind, c := range corepod.ContainersWithResources(spec) {
		all[containerKey{kind, c.Name}] = c
	}
	return all
}

// get returns the container, or an empty one if there is none of that name.
func (all containersByName) get(kind corepod.ContainerType, name string) *corev1.Container {
	if found := all[containerKey{kind, name}]; found != nil {
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
