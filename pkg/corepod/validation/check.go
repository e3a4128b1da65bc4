// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/api/validate/content"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// invalid makes an error of each message about the value.
func invalid(path *field.Path, value any, msgs []string) field.ErrorList {
	var errs field.ErrorList
	for _, msg := range msgs {
		errs = append(errs, field.Invalid(path, value, msg))
	}
	return errs
}

// required returns an error for an empty value.
func required[T ~string](path *field.Path, value T) field.ErrorList {
	if value == "" {
		return field.ErrorList{field.Required(path, "")}
	}
	return nil
}

// requiredAnd returns an error for an empty value, and checks any other.
func requiredAnd(path *field.Path, value string, check func(*field.Path, string) field.ErrorList) field.ErrorList {
	if value == "" {
		return required(path, value)
	}
	return check(path, value)
}

// supported returns an error for a value that is not one of the given ones, which it
// names in their order.
func supported[T ~string](path *field.Path, value T, values ...T) field.ErrorList {
	if slices.Contains(values, value) {
		return nil
	}
	return field.ErrorList{field.NotSupported(path, value, values)}
}

// requiredAndSupported returns an error for a value that is empty or not one of the
// given ones.
func requiredAndSupported[T ~string](path *field.Path, value T, values ...T) field.ErrorList {
	if value == "" {
		return required(path, value)
	}
	return supported(path, value, values...)
}

func dnsLabel(path *field.Path, value string) field.ErrorList {
	return invalid(path, value, validation.IsDNS1123Label(value))
}

func dnsSubdomain(path *field.Path, value string) field.ErrorList {
	return invalid(path, value, validation.IsDNS1123Subdomain(value))
}

func envVarName(path *field.Path, value string) field.ErrorList {
	return invalid(path, value, validation.IsRelaxedEnvVarName(value))
}

// qualifiedName checks for a name with an optional domain before it, as
// label keys are.
func qualifiedName(path *field.Path, value string) field.ErrorList {
	return invalid(path, value, content.IsLabelKey(value))
}

// sortedKeys gives errors about a map the same order every time.
func sortedKeys[K ~string, V any](m map[K]V) []K {
	return slices.Sorted(maps.Keys(m))
}

// member is one field of a union, that is of a struct of which exactly one
// field may be set.
type member struct {
	name     string
	set      bool
	validate func(*field.Path) field.ErrorList
	// errorName stands for the name in the paths of errors within the member.
	errorName string
}

func memberOf[T any](name string, value *T, validate func(*T, *field.Path) field.ErrorList) member {
	return member{
		name:      name,
		set:       value != nil,
		validate:  func(path *field.Path) field.ErrorList { return validate(value, path) },
		errorName: name,
	}
}

// withErrorName is for members that kube-apiserver spells in two ways.
func (m member) withErrorName(name string) member {
	m.errorName = name
	return m
}

// validateUnion validates the first member that is set and forbids the others.
// It returns an error for a union without any.
func validateUnion(path *field.Path, members []member, none, tooMany string) field.ErrorList {
	var errs field.ErrorList
	found := false
	for _, m := range members {
		switch {
		case !m.set:
		case found:
			errs = append(errs, field.Forbidden(path.Child(m.name), tooMany))
		default:
			found = true
			errs = append(errs, m.validate(path.Child(m.errorName))...)
		}
	}
	if !found {
		errs = append(errs, field.Required(path, none))
	}
	return errs
}
