// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package limits

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// Check returns an error for each bound that the Pod violates: LimitRange by
// LimitRange, in each container by container, in each first the minimums, then
// the maximums, then the ratios. It returns none if the Pod may be admitted.
func (s *Set) Check(spec *corev1.PodSpec) []error {
	var found violations
	if len(s.perContainer) > 0 {
		for i := range spec.Containers {
			found.checkContainer(s.perContainer, &spec.Containers[i], i)
		}
		for i := range spec.InitContainers {
			found.checkContainer(s.perContainer, &spec.InitContainers[i], len(spec.Containers)+i)
		}
	}
	for i := range s.perPod {
		r := &s.perPod[i]
		u := podUsage(spec, r.resource)
		found.check(r, &u, 0)
	}
	return found.errors()
}

// violations are in the order in which they were found, resource by resource.
type violations []violation

type violation struct {
	item      *item
	container int
	kind      kind
	text      string
}

// kind is the kind of the bound that is violated.
type kind int

const (
	tooSmall kind = iota
	tooLarge
	tooWide
)

func (v *violations) checkContainer(all []resourceBounds, c *corev1.Container, position int) {
	for i := range all {
		r := &all[i]
		var u usage
		u.read(&c.Resources, r.resource)
		v.check(r, &u, position)
	}
}

// check compares the usage of a resource with all that bounds it.
func (v *violations) check(r *resourceBounds, u *usage, container int) {
	request, limit := u.request.amount(), u.limit.amount()
	for i := range r.bounds {
		b := &r.bounds[i]
		if b.min.given() {
			if problem := b.min.below(u, request, limit); problem != "" {
				v.add(b.item, container, tooSmall, fmt.Sprintf("minimum %s usage per %s is %s%s", r.resource, b.item.limitType, b.min.text, problem))
			}
		}
		if b.max.given() {
			if problem := b.max.above(u, request, limit); problem != "" {
				v.add(b.item, container, tooLarge, fmt.Sprintf("maximum %s usage per %s is %s%s", r.resource, b.item.limitType, b.max.text, problem))
			}
		}
		if b.maxRatio.given() {
			if problem := b.maxRatio.exceededBy(u, request, limit); problem != "" {
				v.add(b.item, container, tooWide, fmt.Sprintf("%s max limit to request ratio per %s is %s, but %s", r.resource, b.item.limitType, b.maxRatio.text, problem))
			}
		}
	}
}

func (v *violations) add(item *item, container int, kind kind, text string) {
	*v = append(*v, violation{item, container, kind, text})
}

// errors returns the violations in the order of the reports.
func (v violations) errors() []error {
	if len(v) == 0 {
		return nil
	}
	slices.SortStableFunc(v, func(a, b violation) int {
		return cmp.Or(cmp.Compare(a.item.position, b.item.position), cmp.Compare(a.container, b.container), cmp.Compare(a.kind, b.kind))
	})
	errs := make([]error, len(v))
	for i := range v {
		errs[i] = errors.New(v[i].item.prefix + v[i].text)
	}
	return errs
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
