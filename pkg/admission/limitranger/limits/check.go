// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package limits

import (
	"cmp"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/borough-io/borough/pkg/corepod"
)

const (
	// maxComparisons is the maximum number of comparisons with bounds for a Pod, over
	// all LimitRanges and containers.
	maxComparisons = 100_000

	// maxViolations is the maximum number of reported violations.
	maxViolations = 100
)

// Check returns an error for each bound that the Pod violates. The errors are in the
// order of the LimitRanges, then of the containers, and for each container first the
// minimums, then the maximums, then the ratios. It returns none if the Pod may be
// admitted.
//
// If there are more than 100 violations, it returns the first 100 and an error with
// the number of the others. If more than 100,000 comparisons would be necessary, it
// makes none and returns one error.
func (s *Set) Check(spec *corev1.PodSpec) []error {
	if err := affordable(spec, s.boundCount, "bounds"); err != nil {
		return []error{err}
	}
	found := newViolations()
	if len(s.perContainer) > 0 {
		position := 0
		for _, c := range corepod.ContainersWithResources(spec) {
			found.checkContainer(s.perContainer, c, position)
			position++
		}
	}
	for _, r := range s.perPod {
		u := podUsage(spec, r.resource())
		found.check(r, &u, 0)
	}
	return found.errors()
}

// affordable returns an error if applying the number of values to each container
// would take too many comparisons.
func affordable(spec *corev1.PodSpec, values int, what string) error {
	containers := containerCount(spec)
	if containers*values <= maxComparisons {
		return nil
	}
	return fmt.Errorf("the Pod has %d containers and the LimitRanges of its namespace have %d %s for each: at most %d are compared for a Pod", containers, values, what, maxComparisons)
}

// violations are the reported violations, in order, and the number of all.
type violations struct {
	firsts[violation]
}

type violation struct {
	bounds    *bounds
	container int
	kind      kind
	text      string // empty if the violation is not kept
}

// kind is the kind of a violated bound.
type kind int

const (
	tooSmall kind = iota
	tooLarge
	tooWide
)

// formats are the formats of the error by kind. Their arguments are the resource, the
// limit type, the bound and the problem.
var formats = [...]string{
	tooSmall: "minimum %s usage per %s is %s%s",
	tooLarge: "maximum %s usage per %s is %s%s",
	tooWide:  "%s max limit to request ratio per %s is %s, but %s",
}

func newViolations() violations {
	return violations{firsts[violation]{max: maxViolations, compare: func(a, b violation) int {
		return cmp.Or(
			cmp.Compare(a.bounds.item.position, b.bounds.item.position),
			cmp.Compare(a.container, b.container),
			cmp.Compare(a.kind, b.kind),
			cmp.Compare(a.bounds.resource, b.bounds.resource))
	}}}
}

func (v *violations) checkContainer(all []resourceBounds, c *corev1.Container, position int) {
	for _, r := range all {
		var u usage
		u.read(&c.Resources, r.resource())
		v.check(r, &u, position)
	}
}

// check compares the usage of a resource with its bounds.
func (v *violations) check(r resourceBounds, u *usage, container int) {
	request, limit := u.request.amount(), u.limit.amount()
	for i := range r {
		b := &r[i]
		if b.min.given() {
			if p := b.min.below(u, &request, &limit); p != none {
				v.report(b, container, tooSmall, &b.min, u, p)
			}
		}
		if b.max.given() {
			if p := b.max.above(u, &request, &limit); p != none {
				v.report(b, container, tooLarge, &b.max, u, p)
			}
		}
		if b.maxRatio.given() {
			if p := b.maxRatio.exceededBy(u, &request, &limit); p != none {
				v.report(b, container, tooWide, &b.maxRatio, u, p)
			}
		}
	}
}

// report adds a violation. It formats the text only if the violation is kept.
func (v *violations) report(b *bounds, container int, kind kind, violated *bound, u *usage, p problem) {
	found := violation{bounds: b, container: container, kind: kind}
	if v.keeps(found) {
		found.text = b.item.prefix + fmt.Sprintf(formats[kind], b.resource, b.item.limitType, violated.quantity, violated.describe(p, u))
	}
	v.add(found)
}

// errors returns the reported errors.
func (v *violations) errors() []error {
	if v.count == 0 {
		return nil
	}
	var errs []error
	for _, violation := range v.kept {
		errs = append(errs, errors.New(violation.text))
	}
	if more := v.count - len(v.kept); more > 0 {
		errs = append(errs, fmt.Errorf("and %d more", more))
	}
	return errs
}

// problem is the reason why a usage violates a bound.
type problem int

const (
	none problem = iota
	noRequest
	noLimit
	badRequest
	badLimit
	noRatioWithoutRequest
	noRatioWithoutLimit
	badRatio
)

// describe returns the text of the problem of the usage with the bound.
func (b *bound) describe(p problem, u *usage) string {
	switch p {
	case noRequest:
		return ".  No request is specified"
	case noLimit:
		return ".  No limit is specified"
	case badRequest:
		return ", but request is " + u.request.quantity.String()
	case badLimit:
		return ", but limit is " + u.limit.quantity.String()
	case noRatioWithoutRequest:
		return "no request is specified or request is 0"
	case noRatioWithoutLimit:
		return "no limit is specified or limit is 0"
	case badRatio:
		request, limit := u.request.amount(), u.limit.amount()
		ratio, _ := limit.ratioTo(&request, &b.amount, max(request.precision, limit.precision, b.precision))
		return fmt.Sprintf("provided ratio is %f", ratio)
	}
	return ""
}

// below returns the problem if the request is missing or the usage is below the
// bound.
func (b *bound) below(u *usage, request, limit *amount) problem {
	p := max(request.precision, limit.precision, b.precision)
	switch {
	case !u.request.found:
		return noRequest
	case request.less(&b.amount, p):
		return badRequest
	case u.limit.found && limit.less(&b.amount, p):
		return badLimit
	}
	return none
}

// above returns the problem if the limit is missing or the usage is above the bound.
func (b *bound) above(u *usage, request, limit *amount) problem {
	p := max(request.precision, limit.precision, b.precision)
	switch {
	case !u.limit.found:
		return noLimit
	case b.less(limit, p):
		return badLimit
	case u.request.found && b.less(request, p):
		return badRequest
	}
	return none
}

// exceededBy returns the problem if the ratio of limit to request is unknown or above
// the bound.
func (b *bound) exceededBy(u *usage, request, limit *amount) problem {
	switch {
	case !u.request.found || u.request.quantity.IsZero():
		return noRatioWithoutRequest
	case !u.limit.found || u.limit.quantity.IsZero():
		return noRatioWithoutLimit
	}
	if _, above := limit.ratioTo(request, &b.amount, max(request.precision, limit.precision, b.precision)); above {
		return badRatio
	}
	return none
}
