// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package attack

import (
	"context"
	"fmt"
	"net/http"
	"time"
)

// health is what an ordinary client sees of the server, and what the server has.
type health struct {
	probe Counters // what the probes cost
	live  Counters // of which the heap and the goroutines count
}

const (
	// probes are how many ordinary requests are sent of each kind.
	probes = 20
	// slower is how much more they may cost after an attack.
	slower = 1.5
	// Caches may have grown, and etcd keeps what was written last.
	heapGrowth = 64 << 20
	// What has been opened for the attack itself, like connections to etcd.
	goroutineGrowth = 40
)

// measureHealth waits until the server is at rest.
func (r *run) measureHealth(ctx context.Context) (health, error) {
	var h health
	before, err := r.Server.count(ctx)
	if err != nil {
		return h, err
	}
	for range probes {
		for _, request := range []Request{
			ordinary(r.paths, 1),
			{Name: "list", Method: http.MethodGet, Path: r.paths.pods()},
			{Name: "get", Method: http.MethodGet, Path: r.paths.pod()},
		} {
			if a := r.Roles[0].send(ctx, request); a.err != nil || a.code/100 != 2 {
				return h, fmt.Errorf("an ordinary request (%s) failed: %d %s %v", request, a.code, a.text, a.err)
			}
		}
	}
	after, err := r.Server.count(ctx)
	if err != nil {
		return h, err
	}
	h.probe = after.minus(before)
	h.live, err = r.Server.countLive(ctx)
	return h, err
}

// compareHealth records whether the server has got slower or larger. It waits
// until what the attack has left behind has ended.
func (r *run) compareHealth(ctx context.Context, before health) error {
	for _, role := range r.Roles {
		role.Client.CloseIdleConnections()
	}
	ctx, cancel := context.WithTimeout(ctx, settleTimeout)
	defer cancel()
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	var faults []string
	for {
		after, err := r.measureHealth(ctx)
		switch {
		case err == nil:
			faults = r.worse(before, after)
			r.Report.Health = fmt.Sprintf("%d ordinary requests allocated %.0f bytes in %.0f objects before, %.0f in %.0f after; %.0f goroutines before, %.0f after; %.0f bytes live before, %.0f after",
				3*probes, before.probe.Bytes, before.probe.Objects, after.probe.Bytes, after.probe.Objects, before.live.Goroutines, after.live.Goroutines, before.live.Heap, after.live.Heap)
		case ctx.Err() == nil: // otherwise the last faults stand
			faults = []string{err.Error()}
		}
		if len(faults) == 0 {
			return nil
		}
		select {
		case <-ctx.Done():
			for _, fault := range faults {
				r.find(r.Roles[0], Request{Class: "health", Name: "afterwards"}, fault)
			}
			return nil
		case <-tick.C:
		}
	}
}

func (r *run) worse(before, after health) (faults []string) {
	for _, is := range []struct {
		what      string
		got, most float64
	}{
		{"bytes for ordinary requests", after.probe.Bytes, slower*before.probe.Bytes + noiseBytes},
		{"objects for ordinary requests", after.probe.Objects, slower*before.probe.Objects + noiseObjects},
		{"bytes that are live", after.live.Heap, before.live.Heap + heapGrowth},
		{"goroutines", after.live.Goroutines, before.live.Goroutines + goroutineGrowth},
	} {
		if is.got > is.most {
			faults = append(faults, fmt.Sprintf("%.0f %s after the attack, at most %.0f", is.got, is.what, is.most))
		}
	}
	return faults
}
