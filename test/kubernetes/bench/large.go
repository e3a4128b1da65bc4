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

// withTenants is the end of the rows with what tenants have: see [side.addTenants].
const withTenants = ", with tenants"

// rows of the case large, of a number of Namespaces.
type largeRows struct{ page, last, whole, pages, restart, restartAll, live, liveAgain, resident string }

// newLargeRows returns rows whose names end with the suffix.
func newLargeRows(namespaces int, suffix string) largeRows {
	of := number(namespaces) + " Namespaces"
	return largeRows{
		page:       fmt.Sprintf("List a page of %d of %s%s", pageSize, of, suffix),
		last:       fmt.Sprintf("List a page of the last tenth of %s%s, p50", of, suffix),
		whole:      "List " + of + suffix,
		pages:      "List " + of + " in pages" + suffix,
		restart:    "Start of the server to ready with " + of + suffix,
		restartAll: "Start of the server to ready with " + of + ", and the controller" + suffix,
		live:       "Live memory for each of " + of + suffix,
		liveAgain:  "Live memory for each of " + of + ", after a restart" + suffix,
		resident:   "Resident memory in proportion to live, with " + of + suffix,
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

// measureLarge measures a server with many Namespaces, first with nothing else and then
// with tenants.
func measureLarge(ctx context.Context, s *side, size size) ([]figure, error) {
	before, err := s.liveMemory(ctx)
	if err != nil {
		return nil, err
	}
	perNamespace := func(live float64) float64 { return (live - before) / float64(size.large) }
	_, err = s.load(ctx, manyClients, size.large, func(ctx context.Context, c *client, i int) error {
		return c.create(ctx, s.prefix+"/namespaces", s.namespaceBody(policyNamespace(i)))
	})
	if err != nil {
		return nil, err
	}
	rows := newLargeRows(size.large, "")
	all, err := s.measureRunning(ctx, rows, size, perNamespace)
	if err != nil {
		return nil, err
	}
	again, err := s.measureRestart(ctx, rows, perNamespace)
	if err != nil {
		return nil, err
	}
	all = append(all, again...)

	if err := s.addTenants(ctx, size); err != nil {
		return nil, err
	}
	rows = newLargeRows(size.large, withTenants)
	err = s.withWatches(ctx, size.viewers, s.viewOfTenant, func(func(int) <-chan time.Time) error {
		running, err := s.measureRunning(ctx, rows, size, perNamespace)
		all = append(all, running...)
		return err
	})
	if err != nil {
		return nil, err
	}
	again, err = s.measureRestart(ctx, rows, perNamespace)
	return append(all, again...), err
}

// addTenants creates a LimitRange, a quota and a RoleBinding in one in ten Namespaces. In
// some of these, a user may get the Namespace.
func (s *side) addTenants(ctx context.Context, size size) error {
	_, err := s.load(ctx, manyClients, size.bindings, func(ctx context.Context, c *client, i int) error {
		if err := c.create(ctx, s.namespaced(policyNamespace(i), "limitranges"), s.limitRangeBody("limits")); err != nil {
			return err
		}
		return c.create(ctx, s.namespaced(policyNamespace(i), "resourcequotas"), s.quotaBody("quota"))
	})
	if err != nil {
		return err
	}
	if err := s.bindTenants(ctx, size); err != nil {
		return err
	}
	if err := s.loadViewers(ctx, size); err != nil {
		return err
	}
	_, err = s.load(ctx, manyClients, size.viewers, func(ctx context.Context, c *client, i int) error {
		return s.view(ctx, c, i, policyUser(i))
	})
	return err
}

// viewOfTenant returns the user that watches a Namespace, and the path. In Kubernetes that
// is an administrator: a user can't watch those that the user may get.
func (s *side) viewOfTenant(i int) (user, path string) {
	path = s.prefix + "/namespaces"
	if s.name == kube {
		return "", path + "?fieldSelector=metadata.name%3D" + policyNamespace(i)
	}
	return policyUser(i), path
}

// measureRunning measures memory, when a load has ended, and lists.
func (s *side) measureRunning(ctx context.Context, rows largeRows, size size, perNamespace func(live float64) float64) ([]figure, error) {
	if err := wait(ctx, size.settle); err != nil {
		return nil, err
	}
	resident, err := anonymousMemory(s.server())
	if err != nil {
		return nil, err
	}
	live, err := s.liveMemory(ctx)
	if err != nil {
		return nil, err
	}
	c, err := s.client(0)
	if err != nil {
		return nil, err
	}
	began := time.Now()
	if err := c.get(ctx, s.prefix+"/namespaces", jsonType); err != nil {
		return nil, err
	}
	whole := time.Since(began)
	began = time.Now()
	pages, err := c.listPages(ctx, s.prefix+"/namespaces")
	if err != nil {
		return nil, err
	}
	all := []figure{
		{row: rows.live, unit: bytesUnit, value: perNamespace(live)},
		{row: rows.resident, unit: factor, value: resident / live},
		{row: rows.whole, unit: seconds, value: whole.Seconds()},
		{row: rows.pages, unit: seconds, value: time.Since(began).Seconds()},
	}
	all = append(all, quantiles(rows.page, pages)...)
	return append(all, figure{row: rows.last, unit: seconds, value: quantile(pages[len(pages)*9/10:], 0.5).Seconds()}), nil
}

// measureRestart measures a start with existing state, after a crash.
func (s *side) measureRestart(ctx context.Context, rows largeRows, perNamespace func(live float64) float64) ([]figure, error) {
	s.kill()
	began := time.Now()
	if err := s.startServer(ctx); err != nil {
		return nil, err
	}
	server := time.Since(began)
	if err := s.startController(ctx); err != nil {
		return nil, err
	}
	both := time.Since(began)
	live, err := s.liveMemory(ctx)
	if err != nil {
		return nil, err
	}
	return []figure{
		{row: rows.restart, unit: seconds, value: server.Seconds()},
		{row: rows.restartAll, unit: seconds, value: both.Seconds()},
		{row: rows.liveAgain, unit: bytesUnit, value: perNamespace(live)},
	}, nil
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

// liveMemory returns the bytes that garbage collections leave on the heap of the server.
func (s *side) liveMemory(ctx context.Context) (live float64, err error) {
	c, err := s.client(0)
	if err != nil {
		return 0, err
	}
	// What is in a sync.Pool survives the first collection.
	for range 2 {
		if err := c.get(ctx, "/debug/pprof/heap?gc=1", "*/*"); err != nil {
			return 0, err
		}
	}
	err = c.metrics(ctx, func(name, _ string, value float64) {
		if name == "go_memstats_heap_alloc_bytes" {
			live = value
		}
	})
	return live, err
}
