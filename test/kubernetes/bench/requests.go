// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
)

// clientCounts are the numbers of clients that create the load.
var clientCounts = []int{1, manyClients}

// newNamespace creates a Namespace with a LimitRange.
func (s *side) newNamespace(ctx context.Context) (string, error) {
	c, err := s.client(0)
	if err != nil {
		return "", err
	}
	name := s.newName("ns")
	return name, s.makeNamespace(ctx, c, name)
}

func (s *side) makeNamespace(ctx context.Context, c *client, name string) error {
	if err := c.create(ctx, s.prefix+"/namespaces", s.namespaceBody(name)); err != nil {
		return err
	}
	return c.create(ctx, s.namespaced(name, "limitranges"), s.limitRangeBody("limits"))
}

// fill creates Pods in a Namespace: pod-0, pod-1 and so on.
func (s *side) fill(ctx context.Context, clients, n int, namespace string) (outcome, error) {
	return s.load(ctx, clients, n, func(ctx context.Context, c *client, i int) error {
		return c.create(ctx, s.namespaced(namespace, "pods"), s.podBody(fmt.Sprintf("pod-%d", i)))
	})
}

func createNamespaces(ctx context.Context, s *side, size size) ([]figure, error) {
	var all []figure
	for _, clients := range clientCounts {
		prefix := s.newName("many")
		o, err := s.load(ctx, clients, size.create/2, func(ctx context.Context, c *client, i int) error {
			return c.create(ctx, s.prefix+"/namespaces", s.namespaceBody(fmt.Sprintf("%s-%d", prefix, i)))
		})
		if err != nil {
			return nil, err
		}
		all = append(all, o.figures("Create Namespaces, "+clientsLabel(clients))...)
	}
	return all, nil
}

func createLimitRanges(ctx context.Context, s *side, size size) ([]figure, error) {
	var all []figure
	for _, clients := range clientCounts {
		namespace, err := s.newNamespace(ctx)
		if err != nil {
			return nil, err
		}
		o, err := s.load(ctx, clients, size.create, func(ctx context.Context, c *client, i int) error {
			return c.create(ctx, s.namespaced(namespace, "limitranges"), s.limitRangeBody(fmt.Sprintf("limits-%d", i)))
		})
		if err != nil {
			return nil, err
		}
		all = append(all, o.figures("Create LimitRanges, "+clientsLabel(clients))...)
	}
	return all, nil
}

func createPods(ctx context.Context, s *side, size size) ([]figure, error) {
	var all []figure
	for _, clients := range clientCounts {
		namespace, err := s.newNamespace(ctx)
		if err != nil {
			return nil, err
		}
		n := size.create
		if clients > 1 {
			n *= 3 // to take as long
		}
		o, err := s.fill(ctx, clients, n, namespace)
		if err != nil {
			return nil, err
		}
		all = append(all, o.figures("Create Pods, "+clientsLabel(clients))...)
	}
	return all, nil
}

func getPods(ctx context.Context, s *side, size size) ([]figure, error) {
	const pods = 100
	namespace, err := s.newNamespace(ctx)
	if err != nil {
		return nil, err
	}
	if _, err := s.fill(ctx, 1, pods, namespace); err != nil {
		return nil, err
	}
	var all []figure
	for _, clients := range clientCounts {
		o, err := s.load(ctx, clients, size.gets, func(ctx context.Context, c *client, i int) error {
			return c.get(ctx, s.namespaced(namespace, fmt.Sprintf("pods/pod-%d", i%pods)), jsonType)
		})
		if err != nil {
			return nil, err
		}
		all = append(all, o.figures("Get a Pod, "+clientsLabel(clients))...)
	}
	return all, nil
}

// listAndDelete lists the Pods of a Namespace in each encoding, and deletes the
// Namespace.
func listAndDelete(ctx context.Context, s *side, size size) ([]figure, error) {
	namespace, err := s.newNamespace(ctx)
	if err != nil {
		return nil, err
	}
	if _, err := s.fill(ctx, manyClients, size.fill, namespace); err != nil {
		return nil, err
	}
	var all []figure
	for _, encoding := range []struct{ name, accept string }{
		{"JSON", jsonType}, {"protobuf", protobufType}, {"Table", tableType},
	} {
		o, err := s.load(ctx, 1, size.lists, func(ctx context.Context, c *client, _ int) error {
			return c.get(ctx, s.namespaced(namespace, "pods"), encoding.accept)
		})
		if err != nil {
			return nil, err
		}
		all = append(all, quantiles(fmt.Sprintf("List %s Pods, %s", number(size.fill), encoding.name), o.each)...)
	}
	gone, err := s.deleteNamespaces(ctx, []string{namespace}, 0)
	if err != nil {
		return nil, err
	}
	return append(all, figure{row: fmt.Sprintf("Delete a Namespace with %s Pods", number(size.fill)), unit: seconds, value: gone[0].Seconds()}), nil
}
