// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

const (
	// stagger is the time between deletes of empty Namespaces. It is long enough
	// that Borough has one Namespace to delete at a time and Kubernetes no more
	// than its controller has workers, and short enough that the fixed delay of
	// Kubernetes does not make the run endless.
	stagger = 250 * time.Millisecond
	// deleteTimeout bounds the deletion of a Namespace.
	deleteTimeout = 5 * time.Minute
)

// deleteNamespaces deletes Namespaces, one per interval or, if the interval is
// 0, all at once with several clients. It returns how long each took, from
// sending its DELETE until a watch reported it deleted.
func (s *side) deleteNamespaces(ctx context.Context, names []string, interval time.Duration) ([]time.Duration, error) {
	ctx, cancel := context.WithTimeout(ctx, deleteTimeout)
	defer cancel()
	var mu sync.Mutex
	left := make(map[string]int, len(names))
	for i, name := range names {
		left[name] = i
	}
	sent, gone := make([]time.Time, len(names)), make([]time.Time, len(names))

	watcher, err := s.client(watchers) // not shared with other clients
	if err != nil {
		return nil, err
	}
	wait, err := watcher.watch(ctx, s.prefix+"/namespaces", func(event, name string) bool {
		now := time.Now()
		mu.Lock()
		defer mu.Unlock()
		if i, ok := left[name]; ok && event == "DELETED" {
			gone[i] = now
			delete(left, name)
		}
		return len(left) > 0
	})
	if err != nil {
		return nil, err
	}
	clients := min(len(names), manyClients)
	if interval > 0 {
		clients = 1
	}
	began := time.Now()
	_, err = s.load(ctx, clients, len(names), func(ctx context.Context, c *client, i int) error {
		if interval > 0 {
			select {
			case <-time.After(time.Until(began.Add(time.Duration(i) * interval))):
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		sent[i] = time.Now()
		return c.delete(ctx, s.prefix+"/namespaces/"+names[i])
	})
	if err != nil {
		return nil, err
	}
	if err := wait(); err != nil {
		return nil, fmt.Errorf("wait for the deletion of Namespaces: %w", err)
	}
	took := make([]time.Duration, len(names))
	for i := range names {
		took[i] = gone[i].Sub(sent[i])
	}
	return took, nil
}

func deleteEmpty(ctx context.Context, s *side, size size) ([]figure, error) {
	return s.deleteNew(ctx, size.empties, "Delete an empty Namespace")
}

// deleteNew creates empty Namespaces and deletes them.
func (s *side) deleteNew(ctx context.Context, n int, row string) ([]figure, error) {
	prefix := s.newName("empty")
	names := make([]string, n)
	_, err := s.load(ctx, 1, n, func(ctx context.Context, c *client, i int) error {
		names[i] = fmt.Sprintf("%s-%d", prefix, i)
		return c.create(ctx, s.prefix+"/namespaces", s.namespaceBody(names[i]))
	})
	if err != nil {
		return nil, err
	}
	took, err := s.deleteNamespaces(ctx, names, stagger)
	if err != nil {
		return nil, err
	}
	return quantiles(row, took), nil
}

func deleteMany(ctx context.Context, s *side, size size) ([]figure, error) {
	namespace, err := s.newNamespace(ctx)
	if err != nil {
		return nil, err
	}
	if _, err := s.fill(ctx, manyClients, size.many, namespace); err != nil {
		return nil, err
	}
	took, err := s.deleteNamespaces(ctx, []string{namespace}, 0)
	if err != nil {
		return nil, err
	}
	return []figure{
		{row: manyRow(size.many), unit: seconds, value: took[0].Seconds()},
		{row: manyPodsRow(size.many), unit: perSecond, value: float64(size.many) / took[0].Seconds()},
	}, nil
}

func manyRow(pods int) string { return fmt.Sprintf("Delete a Namespace with %s Pods", number(pods)) }

func manyPodsRow(pods int) string { return manyRow(pods) + ": Pods" }

// deleteTogether deletes Namespaces with a LimitRange and two Pods each.
func deleteTogether(ctx context.Context, s *side, size size) ([]figure, error) {
	prefix := s.newName("together")
	names := make([]string, size.together)
	_, err := s.load(ctx, manyClients, len(names), func(ctx context.Context, c *client, i int) error {
		names[i] = fmt.Sprintf("%s-%d", prefix, i)
		if err := s.makeNamespace(ctx, c, names[i]); err != nil {
			return err
		}
		for pod := range 2 {
			if err := c.create(ctx, s.namespaced(names[i], "pods"), s.podBody(fmt.Sprintf("pod-%d", pod))); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	began := time.Now()
	if _, err := s.deleteNamespaces(ctx, names, 0); err != nil {
		return nil, err
	}
	return []figure{{row: fmt.Sprintf("Delete %d Namespaces at once", len(names)), unit: seconds, value: time.Since(began).Seconds()}}, nil
}

// measureScale measures a server that has no other Namespaces.
func (b *bench) measureScale(ctx context.Context, _ int) error {
	s, err := startBorough(ctx)
	if err != nil {
		return err
	}
	figures, err := deleteAmongOthers(ctx, s, b.size)
	if err := errors.Join(err, s.stop()); err != nil {
		return err
	}
	b.report.add(s.name, figures)
	return nil
}

// deleteAmongOthers deletes empty Namespaces while the number of others grows.
func deleteAmongOthers(ctx context.Context, s *side, size size) ([]figure, error) {
	var all []figure
	have := 0
	prefix := s.newName("other")
	for _, others := range size.others {
		_, err := s.load(ctx, manyClients, others-have, func(ctx context.Context, c *client, i int) error {
			return c.create(ctx, s.prefix+"/namespaces", s.namespaceBody(fmt.Sprintf("%s-%d", prefix, have+i)))
		})
		if err != nil {
			return nil, err
		}
		have = others
		figures, err := s.deleteNew(ctx, size.empties, fmt.Sprintf("Delete an empty Namespace among %s others", number(others)))
		if err != nil {
			return nil, err
		}
		all = append(all, figures...)
	}
	return all, nil
}
