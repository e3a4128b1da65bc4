// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package attack

import (
	"bufio"
	"cmp"
	"context"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Counters is what a server has done since it started, and what it has now.
type Counters struct {
	Bytes, Objects float64 // that it has allocated
	CPU            float64 // seconds that it has run
	Log            float64 // bytes that it has written
	Heap           float64 // bytes that are in use
	Goroutines     float64
}

func (c Counters) minus(before Counters) Counters {
	c.Bytes -= before.Bytes
	c.Objects -= before.Objects
	c.CPU -= before.CPU
	c.Log -= before.Log
	return c
}

// Server is the server that is attacked, as its operator sees it.
type Server struct {
	// URL is where the server itself is reached, Client has the right to see its
	// metrics and profiles.
	URL    string
	Client *http.Client
	// Log returns all that it has written so far.
	Log func() string
}

// count reads the counters, which costs the server about as much as an ordinary
// request.
func (s Server) count(ctx context.Context) (Counters, error) {
	c := Counters{Log: float64(len(s.Log()))}
	wanted := map[string]*float64{
		"go_memstats_alloc_bytes_total": &c.Bytes,
		"go_memstats_mallocs_total":     &c.Objects,
		"process_cpu_seconds_total":     &c.CPU,
		"go_memstats_heap_alloc_bytes":  &c.Heap,
		"go_goroutines":                 &c.Goroutines,
	}
	var bad error
	err := s.get(ctx, "/metrics", func(line string) {
		name, value, _ := strings.Cut(line, " ")
		if into := wanted[name]; into != nil {
			n, err := strconv.ParseFloat(value, 64)
			*into, bad = n, cmp.Or(bad, err)
			delete(wanted, name)
		}
	})
	if err := cmp.Or(err, bad); err != nil {
		return c, fmt.Errorf("read the counters of the server: %w", err)
	}
	if len(wanted) > 0 {
		return c, fmt.Errorf("the metrics of the server lack %v", slices.Sorted(maps.Keys(wanted)))
	}
	return c, nil
}

// countLive is count after a garbage collection, so that Heap is what is live.
func (s Server) countLive(ctx context.Context) (Counters, error) {
	for range 2 { // what is in a sync.Pool survives one collection
		if err := s.get(ctx, "/debug/pprof/heap?debug=1&gc=1", func(string) {}); err != nil {
			return Counters{}, fmt.Errorf("have the server collect its garbage: %w", err)
		}
	}
	return s.count(ctx)
}

const (
	restTick = 100 * time.Millisecond
	// restBytes and restCPU are what a server at rest does in a tick, with room.
	restBytes, restCPU = 2 << 20, 0.05
	// settleTimeout is how long the server may take to end what hung-up clients
	// left. Nothing is judged by how long it takes.
	settleTimeout = 2 * time.Minute
)

// rest waits until the server has nothing more to do and returns what it has
// done by then.
func (s Server) rest(ctx context.Context, last Counters) (Counters, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, settleTimeout, errNoRest)
	defer cancel()
	tick := time.NewTicker(restTick)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return last, context.Cause(ctx)
		case <-tick.C:
		}
		now, err := s.count(ctx)
		if err != nil {
			return last, err
		}
		if did := now.minus(last); did.Bytes < restBytes && did.CPU < restCPU {
			return now, nil
		}
		last = now
	}
}

var errNoRest = fmt.Errorf("the server still works %s after its client has left", settleTimeout)

// get hands the lines of a page to a function.
func (s Server) get(ctx context.Context, path string, each func(line string)) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, s.URL+path, nil)
	if err != nil {
		return err
	}
	response, err := s.Client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(io.LimitReader(response.Body, 1<<10))
		return fmt.Errorf("%s: %s", response.Status, strings.TrimSpace(string(text)))
	}
	lines := bufio.NewScanner(response.Body)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		each(lines.Text())
	}
	return lines.Err()
}
