// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package limits

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
)

// Check returns an error for each bound that the Pod violates: LimitRange by
// LimitRange, in each container by container, in each first the minimums, then
// the maximums, then the ratios. It returns none if the Pod may be admitted.
func (s *Set) Check(spec *corev1.PodSpec) []error {
	var errs []error
	for i := range s.bounds {
		b := &s.bounds[i]
		if b.limitType == corev1.LimitTypePod {
			errs = append(errs, b.check(func(name corev1.ResourceName) usage { return podUsage(spec, name) })...)
			continue
		}
		for _, containers := range [...][]corev1.Container{spec.Containers, spec.InitContainers} {
			for j := range containers {
				resources := &containers[j].Resources
				errs = append(errs, b.check(func(name corev1.ResourceName) usage { return containerUsage(resources, name) })...)
			}
		}
	}
	return errs
}

// check compares the usage of each bounded resource with its bounds.
func (b *bounds) check(usageOf func(corev1.ResourceName) usage) []error {
	var tooSmall, tooLarge, tooWide []error
	for i := range b.resources {
		r := &b.resources[i]
		u := usageOf(r.resource)
		request, limit := u.request.amount(), u.limit.amount()
		if r.min != nil {
			if problem := r.min.below(&u, request, limit); problem != "" {
				tooSmall = append(tooSmall, fmt.Errorf("%sminimum %s usage per %s is %s%s", b.prefix, r.resource, b.limitType, r.min.text, problem))
			}
		}
		if r.max != nil {
			if problem := r.max.above(&u, request, limit); problem != "" {
				tooLarge = append(tooLarge, fmt.Errorf("%smaximum %s usage per %s is %s%s", b.prefix, r.resource, b.limitType, r.max.text, problem))
			}
		}
		if r.maxRatio != nil {
			if problem := r.maxRatio.exceededBy(&u, request, limit); problem != "" {
				tooWide = append(tooWide, fmt.Errorf("%s%s max limit to request ratio per %s is %s, but %s", b.prefix, r.resource, b.limitType, r.maxRatio.text, problem))
			}
		}
	}
	return append(append(tooSmall, tooLarge...), tooWide...)
}

// below says what of the usage is missing or below the bound.
func (b *bound) below(u *usage, requested, limited amount) string {
	request, limit, bound := atOnePrecision(requested, limited, b.amount)
	switch {
	case !u.request.found:
		return ".  No request is specified"
	case request < bound:
		return ", but request is " + u.request.quantity.String()
	case u.limit.found && limit < bound:
		return ", but limit is " + u.limit.quantity.String()
	}
	return ""
}

// above says what of the usage is missing or above the bound.
func (b *bound) above(u *usage, requested, limited amount) string {
	request, limit, bound := atOnePrecision(requested, limited, b.amount)
	switch {
	case !u.limit.found:
		return ".  No limit is specified"
	case limit > bound:
		return ", but limit is " + u.limit.quantity.String()
	case u.request.found && request > bound:
		return ", but request is " + u.request.quantity.String()
	}
	return ""
}

// exceededBy says why the ratio of limit to request is unknown or above the
// bound.
func (b *bound) exceededBy(u *usage, requested, limited amount) string {
	request, limit, _ := atOnePrecision(requested, limited, b.amount)
	switch {
	case !u.request.found || request == 0:
		return "no request is specified or request is 0"
	case !u.limit.found || limit == 0:
		return "no limit is specified or limit is 0"
	}
	ratio := float64(limit) / float64(request)
	// In thousandths, because the bound may be a fraction, and by this very
	// calculation, because core/v1 rounds so.
	exceeded := ratio > float64(b.units)
	if b.fits {
		exceeded = ratio*1000 > float64(b.milli)
	}
	if exceeded {
		return fmt.Sprintf("provided ratio is %f", ratio)
	}
	return ""
}

// atOnePrecision returns the amounts at one precision: in thousandths where all of
// them fit, else in whole units.
func atOnePrecision(request, limit, bound amount) (int64, int64, int64) {
	if request.fits && limit.fits && bound.fits {
		return request.milli, limit.milli, bound.milli
	}
	return request.units, limit.units, bound.units
}
