// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/api/validate/content"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/borough-io/borough/pkg/apis/tenancy"
	corevalidation "github.com/borough-io/borough/pkg/corepod/validation"
)

// ValidateLimitRange checks a LimitRange that is created or updated. The rules
// and their texts are those of core/v1.
func ValidateLimitRange(lr *tenancy.LimitRange) field.ErrorList {
	errs := corevalidation.ValidateObjectMeta(&lr.ObjectMeta, true, apivalidation.NameIsDNSSubdomain, field.NewPath("metadata"))
	seen := sets.New[corev1.LimitType]()
	for i := range lr.Spec.Limits {
		item, path := &lr.Spec.Limits[i], field.NewPath("spec", "limits").Index(i)
		errs = append(errs, validateLimitType(item.Type, path.Child("type"))...)
		if seen.Has(item.Type) {
			errs = append(errs, field.Duplicate(path.Child("type"), item.Type))
		}
		seen.Insert(item.Type)
		errs = append(errs, validateLimitRangeItem(item, path)...)
	}
	return errs
}

// ValidateLimitRangeUpdate checks a LimitRange that replaces another: all but
// the fixed part of its metadata may change.
func ValidateLimitRangeUpdate(newLR, oldLR *tenancy.LimitRange) field.ErrorList {
	errs := corevalidation.ValidateObjectMetaUpdate(&newLR.ObjectMeta, &oldLR.ObjectMeta, field.NewPath("metadata"))
	return append(errs, ValidateLimitRange(newLR)...)
}

func validateLimitType(value corev1.LimitType, path *field.Path) field.ErrorList {
	if msgs := content.IsLabelKey(string(value)); len(msgs) > 0 {
		return invalid(path, value, msgs...)
	}
	switch value {
	case corev1.LimitTypePod, corev1.LimitTypeContainer, corev1.LimitTypePersistentVolumeClaim:
		return nil
	}
	if !strings.Contains(string(value), "/") {
		return invalid(path, value, "must be a standard limit type or fully qualified")
	}
	return nil
}

func invalid(path *field.Path, value corev1.LimitType, msgs ...string) field.ErrorList {
	var errs field.ErrorList
	for _, msg := range msgs {
		errs = append(errs, field.Invalid(path, value, msg))
	}
	return errs
}

func validateLimitRangeItem(item *corev1.LimitRangeItem, path *field.Path) field.ErrorList {
	validateName := corevalidation.ValidateResourceName
	if item.Type == corev1.LimitTypePod || item.Type == corev1.LimitTypeContainer {
		validateName = corevalidation.ValidateContainerResourceName
	}

	var errs field.ErrorList
	resources := sets.New[corev1.ResourceName]()
	validateNames := func(list corev1.ResourceList, name string) {
		for _, key := range slices.Sorted(maps.Keys(list)) {
			errs = append(errs, validateName(key, path.Child(name).Key(string(key)))...)
			resources.Insert(key)
		}
	}

	validateNames(item.Max, "max")
	validateNames(item.Min, "min")
	defaults, defaultRequests := item.Default, item.DefaultRequest
	if item.Type == corev1.LimitTypePod {
		// What does not belong here is not compared with anything either.
		defaults, defaultRequests = nil, nil
		if len(item.Default) > 0 {
			errs = append(errs, field.Forbidden(path.Child("default"), "may not be specified when `type` is 'Pod'"))
		}
		if len(item.DefaultRequest) > 0 {
			errs = append(errs, field.Forbidden(path.Child("defaultRequest"), "may not be specified when `type` is 'Pod'"))
		}
	}
	validateNames(defaults, "default")
	validateNames(defaultRequests, "defaultRequest")
	if item.Type == corev1.LimitTypePersistentVolumeClaim {
		_, hasMin := item.Min[corev1.ResourceStorage]
		_, hasMax := item.Max[corev1.ResourceStorage]
		if !hasMin && !hasMax {
			errs = append(errs, field.Required(path.Child("limits"), "either minimum or maximum storage value is required, but neither was provided"))
		}
	}
	validateNames(item.MaxLimitRequestRatio, "maxLimitRequestRatio")

	for _, name := range sets.List(resources) {
		bounds := limitBounds{
			min:            quantityOf(item.Min, name),
			max:            quantityOf(item.Max, name),
			defaultLimit:   quantityOf(defaults, name),
			defaultRequest: quantityOf(defaultRequests, name),
			maxRatio:       quantityOf(item.MaxLimitRequestRatio, name),
		}
		errs = append(errs, bounds.validate(name, path)...)
	}
	return errs
}

// limitBounds is what one item of a LimitRange says about one resource; nil is
// not specified.
type limitBounds struct {
	min, max, defaultLimit, defaultRequest, maxRatio *resource.Quantity
}

func quantityOf(list corev1.ResourceList, name corev1.ResourceName) *resource.Quantity {
	if quantity, found := list[name]; found {
		return &quantity
	}
	return nil
}

// validate checks that min <= defaultRequest <= default <= max holds for each
// pair that is specified, and that a ratio can be met between min and max.
func (b limitBounds) validate(name corev1.ResourceName, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	report := func(fieldName string, value *resource.Quantity, format string, args ...any) {
		errs = append(errs, field.Invalid(path.Child(fieldName).Key(string(name)), *value, fmt.Sprintf(format, args...)))
	}

	// In the last two pairs core/v1 reports the bound as the offending value, and
	// not the default.
	for _, pair := range []struct {
		low, high         *resource.Quantity
		lowName, highName string
		field             string
		value             *resource.Quantity
	}{
		{b.min, b.max, "min", "max", "min", b.min},
		{b.min, b.defaultRequest, "min", "default request", "defaultRequest", b.defaultRequest},
		{b.defaultRequest, b.max, "default request", "max", "defaultRequest", b.defaultRequest},
		{b.defaultRequest, b.defaultLimit, "default request", "default limit", "defaultRequest", b.defaultRequest},
		{b.min, b.defaultLimit, "min", "default", "default", b.min},
		{b.defaultLimit, b.max, "default", "max", "default", b.max},
	} {
		if pair.low != nil && pair.high != nil && pair.low.Cmp(*pair.high) > 0 {
			report(pair.field, pair.value, "%s value %s is greater than %s value %s", pair.lowName, pair.low, pair.highName, pair.high)
		}
	}

	if b.maxRatio != nil && b.maxRatio.CmpInt64(1) < 0 {
		report("maxLimitRequestRatio", b.maxRatio, "ratio %s is less than 1", b.maxRatio)
	}
	if b.maxRatio != nil && b.min != nil && b.max != nil {
		if ratio, largest := b.ratios(); ratio > largest {
			report("maxLimitRequestRatio", b.maxRatio, "ratio %s is greater than max/min = %f", b.maxRatio, largest)
		}
	}
	if b.defaultLimit != nil && b.defaultRequest != nil && !corevalidation.IsOvercommitAllowed(name) && b.defaultLimit.Cmp(*b.defaultRequest) != 0 {
		report("defaultRequest", b.defaultRequest, "default value %s must equal to defaultRequest value %s in %s", b.defaultLimit, b.defaultRequest, name)
	}
	return errs
}

// ratios returns maxRatio and the largest ratio that min and max leave room
// for, in milli precision where all three fit. That is infinite, or no number,
// when min is 0; then nothing is greater.
func (b limitBounds) ratios() (ratio, largest float64) {
	fit := true
	for _, q := range []*resource.Quantity{b.maxRatio, b.min, b.max} {
		fit = fit && q.CmpInt64(resource.MaxMilliValue) < 0 && q.CmpInt64(-resource.MaxMilliValue) > 0
	}
	if fit {
		return float64(b.maxRatio.MilliValue()) / 1000, float64(b.max.MilliValue()) / float64(b.min.MilliValue())
	}
	return b.maxRatio.AsFloat64Slow(), b.max.AsFloat64Slow() / b.min.AsFloat64Slow()
}
