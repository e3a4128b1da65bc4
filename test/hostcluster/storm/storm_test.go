// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package storm

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/borough-io/borough/pkg/generated/clientset/versioned"
)

const (
	// clientsPerServer is how many write through each server at a time.
	clientsPerServer = 8
	// longLag and shortLag are how late the servers hear of changes. One is
	// further behind, in turns: what the other's controller has long purged it
	// still takes for alive.
	longLag, shortLag = 300 * time.Millisecond, 20 * time.Millisecond
	// patience bounds a round, in which every termination has to finish. Usual
	// are seconds.
	patience = 5 * time.Minute
	// requestTimeout bounds a request, which gets no answer if it runs into a
	// fault.
	requestTimeout = 30 * time.Second
	// unfencedRounds bounds the search for an orphan without the fence. Usually
	// the first round has some.
	unfencedRounds = 25
	// reportEvery is how many rounds there are between reports.
	reportEvery = 25
)

// doomed are the Namespaces that live and die; nobody deletes the steady one.
// Some names begin with others.
var (
	doomed     = []string{"a", "aa", "a-a", "b", "bb", "c"}
	steady     = "steady"
	namespaces = append(slices.Clone(doomed), steady)
)

// TestStorm: no orphan, ever; among faults neither, and then no acknowledged
// write is lost, and every termination finishes.
func TestStorm(t *testing.T) {
	s := newStorm(t)
	if !t.Run("calm", func(t *testing.T) {
		s.run(t, func() bool {
			s.round(t, nil)
			return s.rounds < *rounds
		})
		s.verify(t)
	}) {
		return
	}
	t.Run("faults", func(t *testing.T) {
		s.faulty = true
		struck := map[string]int{}
		s.run(t, func() bool {
			fault := faults[s.rounds%len(faults)]
			s.round(t, func(ctx context.Context, r *rand.Rand) error {
				if err := fault.strike(ctx, s, r); err != nil {
					return fmt.Errorf("%s: %w", fault.name, err)
				}
				return nil
			})
			struck[fault.name]++
			return s.rounds < max(*rounds, len(faults))
		})
		for _, fault := range faults {
			t.Logf("%d times %s", struck[fault.name], fault.name)
		}
		s.verify(t)
	})
}

// TestStormWithoutFence: the same storm finds orphans when nothing but the
// servers' caches keep them away.
func TestStormWithoutFence(t *testing.T) {
	useUnfenced(t)
	s := newStorm(t)
	s.run(t, func() bool {
		s.round(t, nil)
		return len(s.history.orphans) == 0 && s.rounds < unfencedRounds
	})
	if len(s.history.orphans) == 0 {
		t.Fatal("there is no orphan without the fence: the storm shows nothing")
	}
	t.Logf("the first orphan: %s", s.history.orphans[0])
}

// storm is clients of two servers.
type storm struct {
	*site
	history *history
	clients [2][]rest.Interface
	// faulty says that there are faults, which requests may fail for.
	faulty bool
	// written tells of each Namespace that something was written in it, missed
	// that something was not, for it was gone.
	written, missed map[string]chan struct{}
	// marked tells of each Namespace that has been marked for deletion.
	marked chan struct{}

	// What follows is of the present run.
	*tally
	rounds int
	keys   int // that there are, save those of Namespaces
}

func newStorm(t *testing.T) *storm {
	t.Helper()
	t.Logf("the seed is %d", *seed)
	s := &storm{
		site:    newSite(t),
		written: map[string]chan struct{}{},
		missed:  map[string]chan struct{}{},
		marked:  make(chan struct{}, len(doomed)),
		tally:   newTally(),
	}
	s.history = newHistory(t.Context(), s.client)
	for i := range s.servers {
		for range clientsPerServer {
			config := s.servers[i].Config(t, "admin")
			config.Timeout = requestTimeout
			config.Dial = (&net.Dialer{}).DialContext // a connection of its own
			client, err := versioned.NewForConfig(config)
			if err != nil {
				t.Fatalf("make a client: %v", err)
			}
			s.clients[i] = append(s.clients[i], client.TenancyV1().RESTClient())
		}
	}
	for _, namespace := range namespaces {
		s.written[namespace], s.missed[namespace] = make(chan struct{}, 1), make(chan struct{}, 1)
		if err := s.create(t.Context(), namespace, s.random(0)); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

// random makes the choices of a client in the present round.
func (s *storm) random(client int) *rand.Rand {
	return rand.New(rand.NewPCG(*seed, uint64(s.rounds)<<32|uint64(client)))
}

// run has the clients write for as many rounds as are wanted. In the end the
// servers have to list what etcd has.
func (s *storm) run(t *testing.T, next func() (more bool)) {
	t.Helper()
	s.tally, s.rounds = newTally(), 0
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	over := make(chan struct{})
	var writing sync.WaitGroup
	stop := sync.OnceFunc(func() { close(over); writing.Wait() })
	defer stop()
	for i := range s.clients {
		for j, client := range s.clients[i] {
			r := s.random(1 + i*clientsPerServer + j)
			writing.Go(func() {
				if err := s.write(ctx, over, client, r); err != nil {
					t.Error(err)
				}
			})
		}
	}
	for next() {
		if t.Failed() {
			t.FailNow()
		}
		if s.rounds%reportEvery == 0 {
			s.report(t)
		}
	}
	stop()
	s.examine(ctx, t)
	s.report(t)
	s.compareServers(t)
}

// round lets each of the doomed Namespaces die and be created again, under load.
// A fault, unless it is nil, strikes in the midst of it. Then all that has
// happened is examined.
func (s *storm) round(t *testing.T, fault func(context.Context, *rand.Rand) error) {
	t.Helper()
	s.rounds++
	ctx, cancel := context.WithTimeoutCause(t.Context(), patience, fmt.Errorf("the round has not ended within %s", patience))
	defer cancel()
	s.servers[s.rounds%2].setLag(longLag)
	s.servers[1-s.rounds%2].setLag(shortLag)

	errs := make([]error, len(doomed)+1)
	var living sync.WaitGroup
	for i, namespace := range doomed {
		r := s.random(100 + i)
		living.Go(func() { errs[i] = s.live(ctx, namespace, r) })
	}
	if fault != nil {
		r := s.random(200)
		living.Go(func() { errs[len(doomed)] = s.strike(ctx, fault, r) })
	}
	living.Wait()
	if err := errors.Join(errs...); err != nil {
		t.Fatalf("round %d: %v", s.rounds, err)
	}
	for range len(s.marked) { // those that no fault has waited for
		<-s.marked
	}
	s.examine(ctx, t)
}

// strike has the fault strike when some Namespaces have just been marked for
// deletion.
func (s *storm) strike(ctx context.Context, fault func(context.Context, *rand.Rand) error, r *rand.Rand) error {
	for range 1 + r.IntN(len(doomed)-1) {
		if err := hear(ctx, s.marked); err != nil {
			return fmt.Errorf("wait for terminations: %w", err)
		}
	}
	return fault(ctx, r)
}

// examine has history examined up to the present.
func (s *storm) examine(ctx context.Context, t *testing.T) {
	t.Helper()
	var err error
	if s.keys, err = s.history.examine(ctx, s.prove()); err != nil {
		t.Fatalf("round %d: %v", s.rounds, err)
	}
}

// report logs the counts.
func (s *storm) report(t *testing.T) {
	t.Helper()
	t.Logf("%d rounds: %d created, %d denied (%d terminating, %d without a Namespace), %d acknowledged writes found, %d keys, %d orphans, %d other wrongs\n%s",
		s.rounds, s.total(created), s.total(terminating)+s.total(noNamespace), s.total(terminating), s.total(noNamespace),
		s.proven, s.keys, len(s.history.orphans), len(s.history.wrongs), s.tally)
}

// verify fails the test if anything was found that must not be, or if the storm
// was none.
func (s *storm) verify(t *testing.T) {
	t.Helper()
	if found := slices.Concat(s.history.orphans, s.history.wrongs); len(found) > 0 {
		t.Errorf("%d findings:\n%s", len(found), strings.Join(found[:min(len(found), 50)], "\n"))
	}
	for _, p := range paths {
		if p.creates && s.counts[p.name][created] == 0 {
			t.Errorf("nothing was created by %s", p.name)
		}
	}
	for _, o := range []outcome{terminating, noNamespace} {
		if s.total(o) == 0 {
			t.Errorf("no request had the outcome %q", o)
		}
	}
}

// compareServers fails the test unless both servers list just what etcd has.
// Nobody may write meanwhile.
func (s *storm) compareServers(t *testing.T) {
	t.Helper()
	var want []string
	for namespace := range s.history.namespaces {
		want = append(want, namespacesPrefix+namespace)
	}
	for _, content := range s.history.content {
		want = slices.AppendSeq(want, maps.Keys(content))
	}
	slices.Sort(want)
	for i := range s.servers {
		var got []string
		for _, resource := range []string{"namespaces", "pods", "limitranges"} {
			body, err := s.clients[i][0].Get().Resource(resource).Do(t.Context()).Raw()
			if err != nil {
				t.Fatalf("list %s: %v", resource, err)
			}
			var list metav1.PartialObjectMetadataList
			if err := json.Unmarshal(body, &list); err != nil {
				t.Fatalf("decode the list of %s: %v", resource, err)
			}
			for _, object := range list.Items {
				got = append(got, keyOf(resource, object))
			}
		}
		slices.Sort(got)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("server %d lists other objects (-etcd +server):\n%s", i, diff)
		}
	}
}
