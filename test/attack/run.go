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

// Options configure an attack.
type Options struct {
	Server Server
	// Roles are the users that attack. The first has all rights in the Namespace.
	Roles []Role
	// Namespace exists, and no other client writes to it. The requests use the Pod
	// and the LimitRange that Prepare creates in it.
	Namespace string
	// Seed repeats the random choices of a run.
	Seed uint64
	// Only is the class of the requests to send; if empty, all requests and the
	// storms are sent.
	Only string
	// Every is n to send one of n similar requests.
	Every int
	// Random is the number of random requests that follow.
	Random int
	// CPU bounds the CPU time of a request as well.
	CPU bool
	// Logf, if not nil, is called with the progress.
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

// Run sends all requests and returns the findings. An error means that the attack
// could not be carried out.
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
			if sample.IntN(max(1, role.Every)) > 0 || request.Direct && role.Host != r.Server.URL {
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

// try sends a request as a role and records the findings.
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
		// The server may have done something else at the same time, such as the list
		// of an informer. That does not happen twice in a row.
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

// prepare creates the objects that the requests use.
func (r *run) prepare(ctx context.Context) error {
	for _, request := range Prepare(r.Namespace) {
		a := r.Roles[0].send(ctx, request)
		if a.err != nil || a.code != http.StatusCreated {
			return fmt.Errorf("prepare the attack: %s: %w", request, errors.Join(a.err, fmt.Errorf("%d %s", a.code, a.text)))
		}
	}
	return nil
}
