// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package differential

import (
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
)

const (
	// workers is the number of scenarios that run concurrently, enough to keep
	// both servers busy.
	workers = 6
	// maxShown is the maximum number of differences shown per area, each reduced
	// to a small scenario.
	maxShown = 12
)

// One in so many scenarios is run in Borough's own group as well.
const (
	handwritten = 1
	few         = 4
)

// areas are the results of the tests, for the summary.
var areas []area

type area struct {
	name                                  string
	scenarios, requests, accepted, differ int64
}

func (a *area) add(other area) {
	a.scenarios += other.scenarios
	a.requests += other.requests
	a.accepted += other.accepted
	a.differ += other.differ
}

// newRand returns a test's source of random choices, independent of other
// tests.
func newRand(t *testing.T) *rand.Rand {
	hash := fnv.New64()
	hash.Write([]byte(t.Name()))
	return rand.New(rand.NewPCG(*seed, hash.Sum64()))
}

// check runs the scenarios. It reports those to which the sides respond
// differently, reduced to small scenarios.
func check(t *testing.T, scenarios []scenario) {
	t.Helper()
	both.check(t, strings.TrimPrefix(t.Name(), "Test"), scenarios)
}

// checkGroups runs the scenarios as check does. Of those with kinds of Borough's own
// group, it runs one in every in that group as well.
func checkGroups(t *testing.T, every int, scenarios []scenario) {
	t.Helper()
	check(t, scenarios)
	var own []scenario
	for i := 0; i < len(scenarios); i += every {
		if scenarios[i].hasOwnKinds() {
			own = append(own, scenarios[i])
		}
	}
	ownGroup.check(t, strings.TrimPrefix(t.Name(), "Test")+"/own", own)
}

func (r *runner) check(t *testing.T, name string, scenarios []scenario) {
	t.Helper()
	requests, accepted := r.requests.Load(), r.accepted.Load()
	queue := make(chan scenario)
	var mu sync.Mutex
	var differ int64
	var working sync.WaitGroup
	for range workers {
		working.Go(func() {
			for s := range queue {
				found, err := r.runAgain(t.Context(), s)
				if err != nil {
					t.Errorf("%v\n%s", err, s)
					continue
				}
				if found == nil {
					continue
				}
				mu.Lock()
				differ++
				show := differ <= maxShown
				mu.Unlock()
				if show {
					small, found := r.shrink(t.Context(), s, found)
					t.Errorf("%s: %s\n%s%s", r.borough.side.Name, s.Name, small, found)
					keepScenario(t, small)
				}
			}
		})
	}
	for _, s := range scenarios {
		queue <- s
	}
	close(queue)
	working.Wait()
	if differ > maxShown {
		t.Errorf("%d more of %d scenarios differ", differ-maxShown, len(scenarios))
	}
	done := area{
		name, int64(len(scenarios)), r.requests.Load() - requests, r.accepted.Load() - accepted, differ,
	}
	if i := slices.IndexFunc(areas, func(a area) bool { return a.name == name }); i >= 0 {
		areas[i].add(done)
		return
	}
	areas = append(areas, done)
}

var keeping sync.Mutex

// keepScenario appends the scenario to the file of the flag keep.
func keepScenario(t *testing.T, s scenario) {
	if *keep == "" {
		return
	}
	keeping.Lock()
	defer keeping.Unlock()
	file, err := os.OpenFile(*keep, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		t.Error(err)
		return
	}
	defer file.Close()
	if _, err := file.WriteString(s.String()); err != nil {
		t.Error(err)
	}
}

// generate returns the number of scenarios that the flag cases sets. The name of
// each has what reproduces it.
func generate(t *testing.T, make func(*rand.Rand) scenario) []scenario {
	return generateN(t, *cases, make)
}

func generateN(t *testing.T, n int, make func(*rand.Rand) scenario) []scenario {
	r := newRand(t)
	scenarios := []scenario{}
	for i := range n {
		s := make(r)
		s.Name = fmt.Sprintf("%s %d of seed %d", strings.TrimPrefix(t.Name(), "Test"), i, *seed)
		scenarios = append(scenarios, s)
	}
	return scenarios
}

// summarize prints what has been compared.
func summarize() {
	fmt.Printf("seed %d\n%-22s%10s%10s%10s%10s\n", *seed, "area", "scenarios", "requests", "accepted", "differ")
	sum := area{name: "all"}
	show := func(a area) {
		fmt.Printf("%-22s%10d%10d%10d%10d\n", a.name, a.scenarios, a.requests, a.accepted, a.differ)
	}
	for _, a := range areas {
		show(a)
		sum.add(a)
	}
	show(sum)
	for _, difference := range knownDifferences {
		fmt.Printf("known: %-22s%8d\n", difference.id, difference.folded.Load())
	}
}
