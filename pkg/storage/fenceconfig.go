// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package storage

import (
	"fmt"
	"path"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/borough-io/borough/pkg/apis/tenancy"
	"github.com/borough-io/borough/pkg/storage/charge"
	"github.com/borough-io/borough/pkg/storage/fence"
	"github.com/borough-io/borough/pkg/storage/unreadable"
)

// newFence returns the fence for the Namespaces and all namespaced resources, and what
// charges the quotas.
func newFence(resources *resources, namespaced []schema.GroupResource, caches *watchCaches, unread *unreadable.Objects) (*fence.Fence, *charge.Charger, error) {
	const why = "they are in the same transactions"
	conditional, err := resources.all([]schema.GroupResource{tenancy.Resource("namespacetemplates")}, why)
	if err != nil {
		return nil, nil, err
	}
	content, err := resources.all(namespaced, why)
	if err != nil {
		return nil, nil, err
	}
	charger, err := charge.New(content, caches.deletedPods)
	if err != nil {
		return nil, nil, fmt.Errorf("charge quotas: %w", err)
	}
	f, err := fence.New(fence.Config{
		Namespaces:    resources.namespaces,
		Namespaced:    content,
		Conditional:   conditional,
		GenerationKey: path.Join(resources.prefix, "borough-create-generation"),
		GuardPrefix:   path.Join(resources.prefix, "borough-guards") + "/",
		SeemsEmpty:    caches.empty,
		Unreadable: func(namespace string) bool {
			return slices.ContainsFunc(namespaced, func(r schema.GroupResource) bool { return unread.AnyIn(r, namespace) })
		},
		Charger: charger,
	})
	if err != nil {
		return nil, nil, fmt.Errorf("create the fence: %w", err)
	}
	return f, charger, nil
}
