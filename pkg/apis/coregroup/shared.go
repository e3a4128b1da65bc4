// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package coregroup

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/borough-io/borough/pkg/apis/tenancy"
)

// GroupName is the name of the core group.
const GroupName = corev1.GroupName

// resources are the resources that both groups have, with their subresources.
var resources = map[string][]string{
	"namespaces":     {"status", "finalize"},
	"limitranges":    nil,
	"resourcequotas": nil,
	"pods":           {"status", "binding", "resize", "ephemeralcontainers"},
}

// kinds are the kinds that both groups have.
var kinds = []string{"Namespace", "LimitRange", "ResourceQuota", "Pod", "Binding"}

// Shared reports whether both groups have a resource. A subresource, after a slash, is
// not considered.
func Shared(resource string) bool {
	resource, _, _ = strings.Cut(resource, "/")
	_, shared := resources[resource]
	return shared
}

// Resources returns the shared resources and subresources, sorted.
func Resources() []string {
	var all []string
	for resource, subresources := range resources {
		all = append(all, resource)
		for _, subresource := range subresources {
			all = append(all, resource+"/"+subresource)
		}
	}
	slices.Sort(all)
	return all
}

// Names returns the names of the shared kinds and resources, and the singular ones of
// resources.
func Names() []string {
	var names []string
	for resource := range resources {
		names = append(names, resource)
	}
	for _, kind := range kinds {
		names = append(names, kind, strings.ToLower(kind))
	}
	slices.Sort(names)
	return names
}

// OwnGroup returns our group for a shared resource of the core group, and otherwise the
// group that is given.
func OwnGroup(group, resource string) string {
	if group == GroupName && Shared(resource) {
		return tenancy.GroupName
	}
	return group
}

// OwnKind returns the kind of our group for a shared kind of the core group, and any
// other kind as it is.
func OwnKind(kind schema.GroupVersionKind) schema.GroupVersionKind {
	if kind.Group == GroupName && slices.Contains(kinds, kind.Kind) {
		kind.Group = tenancy.GroupName
	}
	return kind
}
