// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package namespacetemplate

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/borough-io/borough/pkg/apis/tenancy"
)

// maxNamed is how many templates an error names.
const maxNamed = 10

// choose returns the template for a new Namespace, or nil. It returns an error if there
// is more than one.
func choose(templates []tenancy.NamespaceTemplate, ns *tenancy.Namespace) (*tenancy.NamespaceTemplate, error) {
	var selecting, defaults []*tenancy.NamespaceTemplate
	for i := range templates {
		template := &templates[i]
		if template.Spec.NamespaceSelector == nil {
			defaults = append(defaults, template)
			continue
		}
		selector, err := metav1.LabelSelectorAsSelector(template.Spec.NamespaceSelector)
		if err != nil {
			return nil, fmt.Errorf("read the selector of namespace template %q: %w", template.Name, err)
		}
		if selector.Matches(labels.Set(ns.Labels)) {
			selecting = append(selecting, template)
		}
	}
	switch {
	case len(selecting) > 1:
		return nil, fmt.Errorf("%s select it by its labels, but only one template can apply", describe(selecting))
	case len(selecting) == 1:
		return selecting[0], nil
	case len(defaults) > 1:
		return nil, fmt.Errorf("%s have no selector, but only one template can be the default", describe(defaults))
	case len(defaults) == 1:
		return defaults[0], nil
	}
	return nil, nil
}

// describe names templates.
func describe(templates []*tenancy.NamespaceTemplate) string {
	var names []string
	for _, template := range templates {
		names = append(names, strconv.Quote(template.Name))
	}
	slices.Sort(names)
	if more := len(names) - maxNamed; more > 0 {
		names = append(names[:maxNamed], fmt.Sprintf("%d more", more))
	}
	last := len(names) - 1
	return "the namespace templates " + strings.Join(names[:last], ", ") + " and " + names[last]
}
