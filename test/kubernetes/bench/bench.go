// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"time"
)

// size has the sizes of the loads.
type size struct {
	create     int // objects for each create case
	gets       int // reads for each number of clients
	lists      int // lists for each encoding
	watched    int // events for each watcher
	fill, many int // Pods in the two Namespaces that are not empty
	empties    int // empty Namespaces deleted, one every stagger
	together   int // Namespaces deleted at once
	others     []int
	limited    int // Namespaces with LimitRanges
	bindings   int // Namespaces with a RoleBinding
	grants     int // RoleBindings that are created one by one
	visible    int // Namespaces of which a user may get some
	large      int // Namespaces of a large server
	viewers    int // users that watch the Namespaces that they may get
	keys       int // of the raw etcd
	idle       time.Duration
	settle     time.Duration // until a server has given back memory
}

var (
	full = size{
		create: 1000, gets: 3000, lists: 20, watched: 200, fill: 2000, many: 10000, empties: 20, together: 300,
		others: []int{1000, 10000, 50000}, limited: 50000, bindings: 10000, grants: 300, visible: 100000, large: 100000, viewers: 1000, keys: 30000, idle: 10 * time.Second, settle: 2 * time.Minute,
	}
	small = size{
		create: 300, gets: 1000, lists: 5, watched: 100, fill: 500, many: 2000, empties: 5, together: 50,
		others: []int{100, 1000}, limited: 1000, bindings: 1000, grants: 100, visible: 5000, large: 2000, viewers: 100, keys: 10000, idle: 5 * time.Second, settle: 5 * time.Second,
	}
)

// benchCase is one case of the benchmark.
type benchCase struct {
	name, about string
	// rounds limits how often the case runs; 0 means no limit other than the flag.
	rounds int
	// alone marks a case that runs while the sides of the others do not.
	alone bool
	// boroughOnly marks a case that measures only Borough.
	boroughOnly bool
	// run measures one side; together, used if run is nil, measures both.
	run      func(context.Context, *side, size) ([]figure, error)
	together func(b *bench, ctx context.Context, round int) error
}

// cases are in the order in which they run. Those that leave many objects
// behind come last, so that they do not slow down the others.
var cases = []benchCase{
	{name: "start", about: "start to ready, on new and on existing state", alone: true, together: (*bench).measureStarts},
	{name: "limitranger", about: "what LimitRanger costs a Pod, by itself", alone: true, together: (*bench).measureLimitRanger},
	{name: "decision", about: "what a decision and a RoleBinding cost, by themselves", alone: true, together: (*bench).measureDecisions},
	{name: "elsewhere", about: "grant a right and use it on another server", rounds: 1, alone: true, together: (*bench).grantElsewhere},
	{name: "idle", about: "resident memory and CPU with nothing to do", rounds: 1, together: (*bench).measureIdle},
	{name: "namespaces", about: "create Namespaces", run: createNamespaces},
	{name: "limitranges", about: "create LimitRanges", run: createLimitRanges},
	{name: "pods", about: "create Pods that a LimitRange gives defaults", run: createPods},
	{name: "share", about: "what part of the creation of a Pod is LimitRanger's", run: shareOfLimitRanger},
	{name: "quotas", about: "create Pods that quotas count, and delete their Namespaces", rounds: 1, run: measureQuotas},
	{name: "groups", about: "create and list Pods through both groups", rounds: 1, boroughOnly: true, run: compareGroups},
	{name: "get", about: "read a Pod", run: getPods},
	{name: "watch", about: "100 watchers of the same Pods", run: watchPods},
	{name: "empty", about: "delete empty Namespaces", run: deleteEmpty},
	{name: "fill", about: "list 2,000 Pods, then delete their Namespace", run: listAndDelete},
	{name: "many", about: "delete a Namespace with 10,000 Pods", rounds: 1, run: deleteMany},
	{name: "together", about: "delete 300 Namespaces at once", rounds: 2, run: deleteTogether},
	{name: "end", about: "resident memory and CPU after the cases before this", rounds: 1, together: (*bench).measureEnd},
	{name: "reviews", about: "SubjectAccessReviews with 10,000 RoleBindings, also for the next two", run: reviewAccess},
	{name: "user", about: "create Pods as a user with a RoleBinding", run: createAsUser},
	{name: "grant", about: "grant a right and use it", run: grantHere},
	{name: "visible", about: "list the Namespaces that a user may get, among 10,000 and 100,000", rounds: 1, run: listVisible},
	{name: "views", about: "1,000 watches of the Namespaces that a user may get", rounds: 1, boroughOnly: true, run: watchVisible},
	{name: "etcd", about: "raw etcd: how fast it deletes keys", rounds: 1, alone: true, together: (*bench).measureEtcd},
	{name: "scale", about: "delete empty Namespaces among 1,000, 10,000 and 50,000 others", rounds: 1, alone: true, together: (*bench).measureScale},
	{name: "deployed", about: "create Pods and delete 300 Namespaces behind kube-apiserver, with an external etcd", rounds: 1, alone: true, together: (*bench).measureDeployed},
	{name: "large", about: "list 100,000 Namespaces, also in pages, memory and restart, without tenants and with them", rounds: 1, alone: true, together: (*bench).measureLarges},
}

// bench is one run of the benchmark.
type bench struct {
	size   size
	rounds int
	wanted *regexp.Regexp
	report *report
	// limitRanger has the figures of the plugin by itself.
	limitRanger *report
	sides       []*side
	versions    [2]string // of the sides, in the order of starters
	profiles    profiles
}

func (b *bench) run(ctx context.Context) error {
	for _, c := range cases {
		if !b.wanted.MatchString(c.name) {
			continue
		}
		prepare := b.start
		if c.alone {
			prepare = func(context.Context) error { return b.stop() }
		}
		if err := prepare(ctx); err != nil {
			return err
		}
		if err := b.runCase(ctx, c); err != nil {
			return fmt.Errorf("%s: %w", c.name, err)
		}
	}
	if !slices.Contains(b.versions[:], "") {
		return nil
	}
	return b.start(ctx) // the report has their versions
}

// start starts both sides unless they already run.
func (b *bench) start(ctx context.Context) error {
	for _, start := range starters[len(b.sides):] {
		s, err := start(ctx)
		if err != nil {
			return err
		}
		b.sides = append(b.sides, s)
		version, err := s.version(ctx)
		if err != nil {
			return err
		}
		b.versions[len(b.sides)-1] = s.name + " " + version
		if s.name != borough {
			continue
		}
		stopServer := s.stop
		stopProfiles, err := b.profiles.collect(ctx, "standalone", s.config)
		if err != nil {
			return err
		}
		s.stop = func() error { return errors.Join(stopProfiles(), stopServer()) }
	}
	return nil
}

// runCase runs a case on one side and then on the other. Rounds alternate in
// which side is first.
func (b *bench) runCase(ctx context.Context, c benchCase) error {
	rounds := b.rounds
	if c.rounds > 0 {
		rounds = min(rounds, c.rounds)
	}
	for round := range rounds {
		if c.together != nil {
			b.progress(c.name, round, "both")
			if err := c.together(b, ctx, round); err != nil {
				return err
			}
			continue
		}
		for i := range b.sides {
			s := b.sides[(i+round)%len(b.sides)]
			if c.boroughOnly && s.name != borough {
				continue
			}
			b.progress(c.name, round, s.name)
			figures, err := c.run(ctx, s, b.size)
			if err != nil {
				return fmt.Errorf("%s: %w", s.name, err)
			}
			b.report.add(s.name, figures)
		}
	}
	return nil
}

func (b *bench) progress(name string, round int, who string) {
	fmt.Fprintf(os.Stderr, "%s %s, round %d: %s\n", time.Now().Format(time.TimeOnly), name, round+1, who)
}

// stop stops both sides, if they run.
func (b *bench) stop() error {
	var errs []error
	for _, s := range b.sides {
		errs = append(errs, s.stop())
	}
	b.sides = nil
	return errors.Join(errs...)
}
