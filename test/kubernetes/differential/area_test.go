// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package differential

import (
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"os"
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

// check runs the scenarios. It reports those to which the sites respond
// differently, reduced to small scenarios.
func check(t *testing.T, scenarios []scenario) {
	t.Helper()
	requests, accepted := both.requests.Load(), both.accepted.Load()
	queue := make(chan scenario)
	var mu sync.Mutex
	var differ int64
	var working sync.WaitGroup
	for range workers {
		working.Go(func() {
			for s := range queue {
				found, err := both.run(t.Context(), s)
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
					small, found := both.shrink(t.Context(), s, found)
					t.Errorf("%s\n%s%s", s.Name, small, found)
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
		strings.TrimPrefix(t.Name(), "Test"),
		int64(len(scenarios)), both.requests.Load() - requests, both.accepted.Load() - accepted, differ,
	}
	if last := len(areas) - 1; last >= 0 && areas[last].name == done.name {
		areas[last].add(done)
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
	fmt.Printf("seed %d\n%-18s%10s%10s%10s%10s\n", *seed, "area", "scenarios", "requests", "accepted", "differ")
	sum := area{name: "all"}
	show := func(a area) {
		fmt.Printf("%-18s%10d%10d%10d%10d\n", a.name, a.scenarios, a.requests, a.accepted, a.differ)
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
