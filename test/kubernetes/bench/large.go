// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"
)

// pageSize is the limit that kubectl uses.
const pageSize = 500

// compactionFlag lets a server compact etcd while it is measured. Its watch caches keep
// what pages need of the revisions since the last compaction, so memory is highest right
// after a load. The default is 5 minutes.
const compactionFlag = "--etcd-compaction-interval=30s"

// rows of the case large, of a number of Namespaces.
type largeRows struct{ page, last, whole, pages, restart, live, resident string }

func newLargeRows(namespaces int) largeRows {
	of := number(namespaces) + " Namespaces"
	return largeRows{
		page:     fmt.Sprintf("List a page of %d of %s", pageSize, of),
		last:     fmt.Sprintf("List the last %d of %s, p50", pageSize, of),
		whole:    "List " + of,
		pages:    "List " + of + " in pages",
		restart:  "Start of the server to ready with " + of,
		live:     "Live memory for each of " + of,
		resident: "Resident memory in proportion to live, with " + of,
	}
}

// measureLarges measures each side alone with many Namespaces: the controllers of
// Kubernetes would still process theirs while Borough is measured.
func (b *bench) measureLarges(ctx context.Context, round int) error {
	for i := range starters {
		s, err := starters[(i+round)%len(starters)](ctx, compactionFlag)
		if err != nil {
			return err
		}
		b.progress("large", round, s.name)
		figures, err := measureLarge(ctx, s, b.size)
		if err := errors.Join(err, s.stop()); err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
		b.report.add(s.name, figures)
	}
	return nil
}

// measureLarge measures a server with many Namespaces.
func measureLarge(ctx context.Context, s *side, size size) ([]figure, error) {
	rows := newLargeRows(size.large)
	before, err := s.liveMemory(ctx)
	if err != nil {
		return nil, err
	}
	prefix := s.newName("large")
	_, err = s.load(ctx, manyClients, size.large, func(ctx context.Context, c *client, i int) error {
		return c.create(ctx, s.prefix+"/namespaces", s.namespaceBody(fmt.Sprintf("%s-%06d", prefix, i)))
	})
	if err != nil {
		return nil, err
	}
	select {
	case <-time.After(size.settle):
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	resident, err := anonymousMemory(s.server())
	if err != nil {
		return nil, err
	}
	live, err := s.liveMemory(ctx)
	if err != nil {
		return nil, err
	}
	all := []figure{
		{row: rows.live, unit: bytesUnit, value: (live - before) / float64(size.large)},
		{row: rows.resident, unit: factor, value: resident / live},
	}

	c, err := s.client(0)
	if err != nil {
		return nil, err
	}
	began := time.Now()
	if err := c.get(ctx, s.prefix+"/namespaces", jsonType); err != nil {
		return nil, err
	}
	all = append(all, figure{row: rows.whole, unit: seconds, value: time.Since(began).Seconds()})
	began = time.Now()
	pages, err := c.listPages(ctx, s.prefix+"/namespaces")
	if err != nil {
		return nil, err
	}
	all = append(all, figure{row: rows.pages, unit: seconds, value: time.Since(began).Seconds()})
	all = append(all, quantiles(rows.page, pages)...)
	all = append(all, figure{row: rows.last, unit: seconds, value: quantile(pages[len(pages)*9/10:], 0.5).Seconds()})

	s.kill()
	began = time.Now()
	if err := s.startServer(ctx); err != nil {
		return nil, err
	}
	all = append(all, figure{row: rows.restart, unit: seconds, value: time.Since(began).Seconds()})
	if err := s.startController(ctx); err != nil {
		return nil, err
	}
	all = append(all, figure{row: rows.restart + ", and the controller", unit: seconds, value: time.Since(began).Seconds()})
	if live, err = s.liveMemory(ctx); err != nil {
		return nil, err
	}
	return append(all, figure{row: rows.live + ", after a restart", unit: bytesUnit, value: (live - before) / float64(size.large)}), nil
}

// listPages lists a collection in pages, and returns how long each took.
func (c *client) listPages(ctx context.Context, path string) ([]time.Duration, error) {
	var all []time.Duration
	token := ""
	for {
		began := time.Now()
		response, err := c.send(ctx, http.MethodGet, fmt.Sprintf("%s?limit=%d&continue=%s", path, pageSize, url.QueryEscape(token)), jsonType, nil)
		if err != nil {
			return nil, err
		}
		body, err := io.ReadAll(response.Body)
		response.Body.Close()
		if err != nil {
			return nil, fmt.Errorf("list a page of %s: %w", path, err)
		}
		all = append(all, time.Since(began))
		if token = field(body, `"continue":"`); token == "" {
			return all, nil
		}
	}
}

// liveMemory returns the bytes on the heap of the server after a garbage collection.
func (s *side) liveMemory(ctx context.Context) (live float64, err error) {
	c, err := s.client(0)
	if err != nil {
		return 0, err
	}
	if err := c.get(ctx, "/debug/pprof/heap?gc=1", "*/*"); err != nil {
		return 0, err
	}
	err = c.metrics(ctx, func(name, _ string, value float64) {
		if name == "go_memstats_heap_alloc_bytes" {
			live = value
		}
	})
	return live, err
}
