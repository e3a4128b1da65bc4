// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package storage

import (
	"fmt"
	"path"

	"github.com/borough-io/borough/pkg/storage/charge"
	"github.com/borough-io/borough/pkg/storage/fence"
)

// newFence returns the fence for the resources of the config, and what charges their
// quotas, which is nil if there are none.
func newFence(resources *resources, config Config, caches *watchCaches) (*fence.Fence, *charge.Charger, error) {
	fenceConfig := fence.Config{
		Namespaces:    resources.namespaces,
		GenerationKey: path.Join(resources.prefix, "borough-create-generation"),
		GuardPrefix:   path.Join(resources.prefix, "borough-guards") + "/",
		SeemsEmpty:    caches.empty,
	}
	const why = "they are in the same transactions"
	var err error
	if fenceConfig.Conditional, err = resources.all(config.Conditional, why); err != nil {
		return nil, nil, err
	}
	if fenceConfig.Namespaced, err = resources.all(config.Namespaced, why); err != nil {
		return nil, nil, err
	}
	if !config.Quotas.Empty() {
		if fenceConfig.Charger, err = charge.New(config.Quotas, fenceConfig.Namespaced, caches.deletedPods); err != nil {
			return nil, nil, fmt.Errorf("charge quotas: %w", err)
		}
	}
	f, err := fence.New(fenceConfig)
	if err != nil {
		return nil, nil, fmt.Errorf("create the fence: %w", err)
	}
	return f, fenceConfig.Charger, nil
}
