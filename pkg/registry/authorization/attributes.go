// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package authorization

import (
	"cmp"
	"errors"
	"fmt"
	"strings"

	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	"github.com/borough-io/borough/pkg/requestlimits"
)

// attributesOf returns the attributes of the request that a valid spec describes.
func attributesOf(spec authorizationv1.SubjectAccessReviewSpec) authorizer.AttributesRecord {
	u := &user.DefaultInfo{Name: spec.User, Groups: spec.Groups, UID: spec.UID}
	if spec.Extra != nil {
		u.Extra = make(map[string][]string, len(spec.Extra))
		for key, values := range spec.Extra {
			u.Extra[key] = values
		}
	}
	return attributes(u, spec.ResourceAttributes, spec.NonResourceAttributes)
}

func attributes(u user.Info, resource *authorizationv1.ResourceAttributes, nonResource *authorizationv1.NonResourceAttributes) authorizer.AttributesRecord {
	if resource == nil {
		return authorizer.AttributesRecord{User: u, Verb: nonResource.Verb, Path: nonResource.Path}
	}
	a := authorizer.AttributesRecord{
		User:            u,
		Verb:            resource.Verb,
		Namespace:       resource.Namespace,
		APIGroup:        resource.Group,
		APIVersion:      cmp.Or(resource.Version, "*"),
		Resource:        resource.Resource,
		Subresource:     resource.Subresource,
		Name:            resource.Name,
		ResourceRequest: true,
	}
	if s := resource.LabelSelector; s != nil {
		a.LabelSelectorRequirements, a.LabelSelectorParsingErr = labelRequirements(s)
	}
	if s := resource.FieldSelector; s != nil {
		a.FieldSelectorRequirements, a.FieldSelectorParsingErr = fieldRequirements(s)
	}
	return a
}

// Of requirements that cannot be parsed, the others are used: they are combined with
// AND, so the request that is reviewed only selects more.

func labelRequirements(s *authorizationv1.LabelSelectorAttributes) (labels.Requirements, error) {
	if len(s.Requirements) == 0 {
		if err := requestlimits.CheckLabelSelector(s.RawSelector); err != nil {
			return nil, err
		}
		selector, err := labels.Parse(s.RawSelector)
		if err != nil {
			return nil, err
		}
		requirements, _ := selector.Requirements()
		return requirements, nil
	}
	operators := map[metav1.LabelSelectorOperator]selection.Operator{
		metav1.LabelSelectorOpIn:           selection.In,
		metav1.LabelSelectorOpNotIn:        selection.NotIn,
		metav1.LabelSelectorOpExists:       selection.Exists,
		metav1.LabelSelectorOpDoesNotExist: selection.DoesNotExist,
	}
	var requirements labels.Requirements
	var errs []error
	for _, r := range s.Requirements {
		operator, ok := operators[r.Operator]
		if !ok {
			errs = append(errs, fmt.Errorf("%q is not a valid label selector operator", r.Operator))
			continue
		}
		requirement, err := labels.NewRequirement(r.Key, operator, r.Values)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		requirements = append(requirements, *requirement)
	}
	return requirements, errors.Join(errs...)
}

func fieldRequirements(s *authorizationv1.FieldSelectorAttributes) (fields.Requirements, error) {
	if len(s.Requirements) == 0 {
		if err := requestlimits.CheckFieldSelector(s.RawSelector); err != nil {
			return nil, err
		}
		selector, err := fields.ParseSelector(s.RawSelector)
		if err != nil {
			return nil, err
		}
		return selector.Requirements(), nil
	}
	operators := map[metav1.FieldSelectorOperator]selection.Operator{
		metav1.FieldSelectorOpIn:    selection.Equals,
		metav1.FieldSelectorOpNotIn: selection.NotEquals,
	}
	var requirements fields.Requirements
	var errs []error
	for _, r := range s.Requirements {
		operator, ok := operators[r.Operator]
		if !ok || len(r.Values) != 1 {
			errs = append(errs, fmt.Errorf("the operator %s with %d values is not supported", r.Operator, len(r.Values)))
			continue
		}
		requirements = append(requirements, fields.Requirement{Field: r.Key, Operator: operator, Value: r.Values[0]})
	}
	return requirements, errors.Join(errs...)
}

// evaluationError returns the error of an authorizer, and which selectors were ignored.
func evaluationError(err error, a authorizer.AttributesRecord) string {
	var texts []string
	if err != nil {
		texts = append(texts, err.Error())
	}
	ignored := func(selector string, used int, err error) {
		if err == nil {
			return
		}
		how := "ignored"
		if used > 0 {
			how = "partially ignored"
		}
		texts = append(texts, fmt.Sprintf("spec.resourceAttributes.%s %s due to parse error", selector, how))
	}
	ignored("fieldSelector", len(a.FieldSelectorRequirements), a.FieldSelectorParsingErr)
	ignored("labelSelector", len(a.LabelSelectorRequirements), a.LabelSelectorParsingErr)
	return strings.Join(texts, "; ")
}
