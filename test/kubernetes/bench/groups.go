// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
)

const (
	coreCreateRow = "Create Pods through the core group, 32 clients, in proportion to Borough's"
	coreListRow   = "List 2,000 Pods through the core group, in proportion to Borough's"
)

// compareGroups creates and lists Pods through Borough's group and through the core group
// in turn.
func compareGroups(ctx context.Context, s *side, size size) ([]figure, error) {
	const turns, lists = 6, 20
	groups := [2]*side{s, {name: s.name, apiVersion: kubeVersion, prefix: kubePrefix, config: s.config}}
	var creates, reads [2]time.Duration
	for turn := range turns {
		i := turn % 2
		namespace, err := s.newNamespace(ctx)
		if err != nil {
			return nil, err
		}
		o, err := groups[i].fill(ctx, manyClients, size.fill, namespace)
		if err != nil {
			return nil, err
		}
		creates[i] += o.elapsed
		o, err = groups[i].load(ctx, 1, lists, func(ctx context.Context, c *client, _ int) error {
			return c.get(ctx, groups[i].namespaced(namespace, "pods"), runtime.ContentTypeJSON)
		})
		if err != nil {
			return nil, err
		}
		reads[i] += o.elapsed
		if _, err := s.deleteNamespaces(ctx, []string{namespace}, 0); err != nil {
			return nil, fmt.Errorf("delete the Namespace of a turn: %w", err)
		}
	}
	return []figure{
		{row: coreCreateRow, unit: proportion, value: creates[0].Seconds() / creates[1].Seconds()},
		{row: coreListRow, unit: proportion, value: reads[0].Seconds() / reads[1].Seconds()},
	}, nil
}
