// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"sync"
	"time"
)

const watchers = 100

// watchPods measures watchers of Pods that a few clients create. The delay is
// the time from sending the create until the watcher has the event.
func watchPods(ctx context.Context, s *side, size size) ([]figure, error) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Minute)
	defer cancel()
	namespace, err := s.newNamespace(ctx)
	if err != nil {
		return nil, err
	}
	var mu sync.Mutex
	sent := map[string]time.Time{}
	delays := make([][]time.Duration, watchers)
	waits := make([]func() error, watchers)
	for w := range watchers {
		c, err := s.client(w)
		if err != nil {
			return nil, err
		}
		waits[w], err = c.watch(ctx, s.namespaced(namespace, "pods"), func(event, name string) bool {
			now := time.Now()
			mu.Lock()
			at, ok := sent[name]
			mu.Unlock()
			if event == "ADDED" && ok {
				delays[w] = append(delays[w], now.Sub(at))
			}
			return len(delays[w]) < size.watched
		})
		if err != nil {
			return nil, err
		}
	}
	began := time.Now()
	_, err = s.load(ctx, 4, size.watched, func(ctx context.Context, c *client, i int) error {
		name := fmt.Sprintf("pod-%d", i)
		mu.Lock()
		sent[name] = time.Now()
		mu.Unlock()
		return c.create(ctx, s.namespaced(namespace, "pods"), s.podBody(name))
	})
	if err != nil {
		return nil, err
	}
	var all []time.Duration
	for w, wait := range waits {
		if err := wait(); err != nil {
			return nil, err
		}
		all = append(all, delays[w]...)
	}
	o := outcome{time.Since(began), all}
	return o.figures(fmt.Sprintf("Watch events to %d watchers", watchers)), nil
}
