// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"time"

	"github.com/borough-io/borough/test/poll"
)

// quotaTimeout is how long Kubernetes may take to count.
const quotaTimeout = time.Minute

const (
	quotaRow      = "Create Pods in one Namespace with a quota, 32 clients"
	quotaShareRow = quotaRow + ", in proportion to none"
	quotasRow     = "Create Pods in 32 Namespaces with a quota each, 32 clients, in proportion to none"
	quotaPurgeRow = "Delete a Namespace with 2,000 Pods and a quota, in proportion to none"
)

// measureQuotas creates Pods and deletes their Namespaces, without quotas and with them
// in turn.
func measureQuotas(ctx context.Context, s *side, size size) ([]figure, error) {
	one, err := s.compareQuotas(ctx, size, 1)
	if err != nil {
		return nil, err
	}
	figures := []figure{
		{row: quotaRow, unit: perSecond, value: float64(one.pods) / one.creates[1].Seconds()},
		{row: quotaShareRow, unit: proportion, value: one.creates[0].Seconds() / one.creates[1].Seconds()},
	}
	if s.name == kube {
		return figures, nil // it takes minutes to delete the other Namespaces
	}
	many, err := s.compareQuotas(ctx, size, manyClients)
	if err != nil {
		return nil, err
	}
	return append(figures, []figure{
		{row: quotasRow, unit: proportion, value: many.creates[0].Seconds() / many.creates[1].Seconds()},
		{row: quotaPurgeRow, unit: proportion, value: one.deletes[0].Seconds() / one.deletes[1].Seconds()},
	}...), nil
}

// quotaTimes are how long the creates of Pods and the deletes of their Namespaces took,
// without and with quotas.
type quotaTimes struct {
	pods             int
	creates, deletes [2]time.Duration
}

func (s *side) compareQuotas(ctx context.Context, size size, namespaces int) (quotaTimes, error) {
	var times quotaTimes
	const turns = 6
	for turn := range turns {
		limited := turn % 2
		names := make([]string, namespaces)
		for i := range names {
			var err error
			if names[i], err = s.newNamespace(ctx); err != nil {
				return quotaTimes{}, err
			}
			if limited == 0 {
				continue
			}
			if err := s.createQuota(ctx, names[i]); err != nil {
				return quotaTimes{}, err
			}
		}
		o, err := s.load(ctx, manyClients, size.fill, func(ctx context.Context, c *client, i int) error {
			return c.create(ctx, s.namespaced(names[i%namespaces], "pods"), s.podBody(fmt.Sprintf("pod-%d", i)))
		})
		if err != nil {
			return quotaTimes{}, err
		}
		times.creates[limited] += o.elapsed
		times.pods += size.fill * limited
		took, err := s.deleteNamespaces(ctx, names, 0)
		if err != nil {
			return quotaTimes{}, err
		}
		for _, d := range took {
			times.deletes[limited] += d
		}
	}
	return times, nil
}

// createQuota creates a quota and waits until Pods can be created: Kubernetes denies them
// until its controller has counted.
func (s *side) createQuota(ctx context.Context, namespace string) error {
	c := s.clients[0]
	if err := c.create(ctx, s.namespaced(namespace, "resourcequotas"), s.quotaBody("quota")); err != nil {
		return err
	}
	return poll.Until(ctx, quotaTimeout, func(ctx context.Context) error {
		return c.create(ctx, s.namespaced(namespace, "pods")+"?dryRun=All", s.podBody("pod"))
	})
}
