// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package attack

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"net/http"
)

// Options say what is attacked and how long.
type Options struct {
	Server Server
	// Roles are who attacks. The first has all rights in the Namespace.
	Roles []Role
	// Namespace is there, and no other client writes to it. The requests are about
	// the Pod and the LimitRange that Prepare makes in it.
	Namespace string
	// Seed repeats the random choices of a run.
	Seed uint64
	// Only is the class of the requests that are sent; empty is all of them, and
	// the storms.
	Only string
	// Every says that one of so many of the requests that are alike is sent.
	Every int
	// Random is how many random requests follow.
	Random int
	// CPU bounds the CPU time of a request as well.
	CPU bool
	// Logf is called with the progress, where it is not nil.
	Logf func(format string, args ...any)
}

// run is one attack under way.
type run struct {
	Options
	paths  paths
	bounds bounds
	Report *Report

	last     Counters // that were read
	counting Counters // what it costs to read them
	counted  int      // requests
}

// Run sends all requests and returns what came of them. An error means that the
// attack could not be carried out, not that it found something.
func Run(ctx context.Context, options Options) (*Report, error) {
	r := &run{Options: options, paths: paths{options.Namespace}, Report: newReport(options.Seed)}
	if r.Logf == nil {
		r.Logf = func(string, ...any) {}
	}
	if err := r.prepare(ctx); err != nil {
		return nil, err
	}
	if err := r.calibrate(ctx); err != nil {
		return nil, err
	}
	r.Logf("%s", r.Report.Bounds)
	before, err := r.measureHealth(ctx)
	if err != nil {
		return nil, err
	}
	sample := rand.New(rand.NewPCG(r.Seed, 1))
	for request := range r.requests() {
		if request.Variant && sample.IntN(max(1, r.Every)) > 0 {
			continue
		}
		for _, role := range r.Roles {
			if sample.IntN(max(1, role.Every)) > 0 || request.Unreadable && role.Host != r.Server.URL {
				continue
			}
			if err := r.try(ctx, role, request); err != nil {
				return r.Report, fmt.Errorf("%s as %s: %w", request, role.Name, err)
			}
		}
	}
	if r.sends("storms") {
		if err := r.storms(ctx); err != nil {
			return r.Report, err
		}
	}
	return r.Report, r.compareHealth(ctx, before)
}

// requests are all requests that are sent.
func (r *run) requests() iter.Seq[Request] {
	return func(yield func(Request) bool) {
		for _, generate := range []func(paths) []Request{
			quantities, sizes, depths, encodings, protobufs, patches, parameters, headers, hangups,
		} {
			requests := generate(r.paths)
			if !r.sends(requests[0].Class) {
				continue
			}
			r.Logf("%d requests of class %s", len(requests), requests[0].Class)
			for _, request := range requests {
				if !yield(request) {
					return
				}
			}
		}
		if !r.sends("random") {
			return
		}
		r.Logf("%d random requests", r.Random)
		random := NewRandom(r.Namespace, r.Seed)
		for i := range r.Random {
			if !yield(random.Request(i)) {
				return
			}
		}
	}
}

func (r *run) sends(class string) bool { return r.Only == "" || r.Only == class }

// try sends a request as a role and records what is wrong with what comes of it.
func (r *run) try(ctx context.Context, role Role, request Request) error {
	cost, a, err := r.cost(ctx, role, request)
	if err != nil {
		return fmt.Errorf("%w (the answer was %d, %v)", err, a.code, a.err)
	}
	if fault := judgeAnswer(role, request, a); fault != "" {
		r.find(role, request, fault)
	}
	share, above := r.judgeCost(role, request, a, cost)
	if above != "" {
		// Something else may have fallen into the time of this request, like a list
		// of an informer. That does not happen twice.
		if cost, a, err = r.cost(ctx, role, request); err != nil {
			return err
		}
		if share, above = r.judgeCost(role, request, a, cost); above != "" {
			r.find(role, request, above)
		}
	}
	r.Report.add(role, request, a, share)
	return nil
}

func (r *run) find(role Role, request Request, fault string) {
	r.Report.Findings = append(r.Report.Findings, Finding{role.Name, request, fault})
	r.Logf("FOUND %s as %s: %s", request, role.Name, fault)
}

// prepare makes what the requests are about.
func (r *run) prepare(ctx context.Context) error {
	for _, request := range Prepare(r.Namespace) {
		a := r.Roles[0].send(ctx, request)
		if a.err != nil || a.code != http.StatusCreated {
			return fmt.Errorf("prepare the attack: %s: %w", request, errors.Join(a.err, fmt.Errorf("%d %s", a.code, a.text)))
		}
	}
	return nil
}
