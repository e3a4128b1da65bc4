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

	"github.com/borough-io/borough/pkg/apis/tenancy"
	"github.com/borough-io/borough/pkg/generated/clientset/versioned"
	"github.com/borough-io/borough/test/kubernetes/replicas"
)

const (
	// clientsPerServer is the number of clients that write through each server
	// concurrently.
	clientsPerServer = 8
	// longDelay and shortDelay are the delays of the servers' watches, in turns: a
	// Namespace that the controller of one server purged long ago is still active
	// in the cache of the other.
	longDelay, shortDelay = 300 * time.Millisecond, 20 * time.Millisecond
	// roundTimeout bounds a round, in which every termination has to finish.
	// Rounds usually take seconds, and minutes when responses of etcd are lost.
	roundTimeout = 10 * time.Minute
	// requestTimeout bounds a request, which may get no response during a fault. A server
	// that runs answers within 60 seconds.
	requestTimeout = 90 * time.Second
	// writesDuringFault is the number of writes to wait for before a fault ends, if
	// the servers can still acknowledge writes.
	writesDuringFault = 20
	// reportEvery is the number of rounds between reports.
	reportEvery = 25
)

// recreated are the Namespaces that are deleted and created again; the steady
// one is not. Some names are prefixes of others.
var (
	recreated  = []string{"a", "aa", "a-a", "b", "bb", "c"}
	steady     = "steady"
	namespaces = append(slices.Clone(recreated), steady)
)

// TestStorm checks that there is never an orphan and, also with faults, that no
// acknowledged write is lost and every termination finishes.
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
		injected := map[string]int{}
		s.run(t, func() bool {
			fault := &replicas.Faults[s.rounds%len(replicas.Faults)]
			s.round(t, fault)
			injected[fault.Name]++
			return s.rounds < max(*rounds, len(replicas.Faults))
		})
		for _, fault := range replicas.Faults {
			t.Logf("%d times %s", injected[fault.Name], fault.Name)
		}
		s.verify(t)
	})
}

// storm is a set of clients of two servers.
type storm struct {
	*replicas.Set
	history *history
	clients [2][]rest.Interface
	rights  []*right
	// faulty means that requests may fail because of faults.
	faulty bool
	// written gets a signal when something was written in a Namespace, missed when
	// a write failed because the Namespace is missing.
	written, missed map[string]chan struct{}
	// marked gets a signal for each Namespace that is marked for deletion.
	marked chan struct{}

	// The fields below are for the current run.
	*tally
	rounds int
	keys   int // number of keys in Namespaces
}

func newStorm(t *testing.T) *storm {
	t.Helper()
	t.Logf("the seed is %d", *seed)
	s := &storm{
		Set:     replicas.New(t),
		written: map[string]chan struct{}{},
		missed:  map[string]chan struct{}{},
		marked:  make(chan struct{}, len(recreated)),
		tally:   newTally(),
	}
	s.history = newHistory(t.Context(), s.Client)
	for i := range s.Servers {
		for range clientsPerServer {
			s.clients[i] = append(s.clients[i], newClient(t, &s.Servers[i], ""))
		}
	}
	for _, namespace := range namespaces {
		s.written[namespace], s.missed[namespace] = make(chan struct{}, 1), make(chan struct{}, 1)
		if err := s.create(t.Context(), namespace, s.random(0)); err != nil {
			t.Fatal(err)
		}
	}
	s.makeRights(t)
	return s
}

// newClient returns a client of the server with all rights, or of another user.
func newClient(t *testing.T, s *replicas.Server, user string) rest.Interface {
	t.Helper()
	config := s.Config(t, "admin")
	config.Timeout = requestTimeout
	config.Impersonate.UserName = user
	config.Dial = (&net.Dialer{}).DialContext // a separate connection
	client, err := versioned.NewForConfig(config)
	if err != nil {
		t.Fatalf("make a client: %v", err)
	}
	return client.TenancyV1().RESTClient()
}

// random returns the random choices of a client in the current round.
func (s *storm) random(client int) *rand.Rand {
	return rand.New(rand.NewPCG(*seed, uint64(s.rounds)<<32|uint64(client)))
}

// run lets the clients write while rounds run. After the last round the
// servers' lists must match etcd.
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
	r := s.random(400)
	writing.Go(func() {
		if err := s.changeTemplate(ctx, over, r); err != nil {
			t.Error(err)
		}
	})
	for i, right := range s.rights {
		s.exercise(ctx, t, &writing, over, right, s.random(300+i))
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
	s.compareDecisions(ctx, t)
}

// round deletes and creates again each of the recreated Namespaces, under load.
// A fault, unless it is nil, is injected in the middle. The round then examines
// the history.
func (s *storm) round(t *testing.T, fault *replicas.Fault) {
	t.Helper()
	s.rounds++
	ctx, cancel := context.WithTimeoutCause(t.Context(), roundTimeout, fmt.Errorf("the round did not end within %s", roundTimeout))
	defer cancel()
	s.Servers[s.rounds%2].SetDelay(longDelay)
	s.Servers[1-s.rounds%2].SetDelay(shortDelay)

	errs := make([]error, len(recreated)+1)
	var running sync.WaitGroup
	for i, namespace := range recreated {
		r := s.random(100 + i)
		running.Go(func() { errs[i] = s.recreate(ctx, namespace, r) })
	}
	if fault != nil {
		r := s.random(200)
		running.Go(func() { errs[len(recreated)] = s.injectFault(ctx, fault, r) })
	}
	running.Wait()
	if err := errors.Join(errs...); err != nil {
		t.Fatalf("round %d: %v", s.rounds, err)
	}
	for range len(s.marked) { // signals that no fault has waited for
		<-s.marked
	}
	s.examine(ctx, t)
}

// injectFault injects the fault when some Namespaces have just been marked for
// deletion.
func (s *storm) injectFault(ctx context.Context, fault *replicas.Fault, r *rand.Rand) error {
	for range 1 + r.IntN(len(recreated)-1) {
		if err := awaitSignal(ctx, s.marked); err != nil {
			return fmt.Errorf("wait for terminations: %w", err)
		}
	}
	return fault.Inject(ctx, s.Set, r, s.awaitWrites)
}

// awaitWrites returns after writesDuringFault writes to the steady Namespace.
func (s *storm) awaitWrites(ctx context.Context) error {
	for range writesDuringFault {
		if err := awaitSignal(ctx, s.written[steady]); err != nil {
			return fmt.Errorf("wait for writes during the fault: %w", err)
		}
	}
	return nil
}

// examine examines the history up to the present.
func (s *storm) examine(ctx context.Context, t *testing.T) {
	t.Helper()
	writes, deletes := s.takeAcknowledged()
	var err error
	if s.keys, err = s.history.examine(ctx, writes, deletes); err != nil {
		t.Fatalf("round %d: %v", s.rounds, err)
	}
}

// report logs the counts.
func (s *storm) report(t *testing.T) {
	t.Helper()
	t.Logf("%d rounds: %d created, %d denied (%d terminating, %d without a Namespace), %d acknowledged writes found, %d objects created once each, %d keys, %d orphans, %d wrong usages, %d other violations, %d quotas compared, %d Namespaces with a template and %d without, %s\n%s",
		s.rounds, s.total(created), s.total(terminating)+s.total(noNamespace), s.total(terminating), s.total(noNamespace),
		s.proven, len(s.history.created), s.keys, len(s.history.orphans), len(s.history.miscounts), len(s.history.violations), s.history.compared, s.history.templates.with, s.history.templates.without, s.describeRights(), s.tally)
}

// verify fails the test if there are orphans or violations, or if the storm did
// not cover all paths and outcomes.
func (s *storm) verify(t *testing.T) {
	t.Helper()
	if found := slices.Concat(s.history.orphans, s.history.miscounts, s.history.violations); len(found) > 0 {
		t.Errorf("%d findings:\n%s", len(found), strings.Join(found[:min(len(found), 50)], "\n"))
	}
	if s.history.compared == 0 {
		t.Error("no quota was compared with the objects")
	}
	for _, p := range paths {
		n := s.counts[p.name][created]
		if p.effect != creates {
			n += s.counts[p.name][updated] + s.counts[p.name][deleted]
		}
		if n == 0 {
			t.Errorf("no %s has succeeded", p.name)
		}
	}
	s.verifyRights(t)
	s.verifyTemplates(t)
	for _, o := range []outcome{terminating, noNamespace, denied} {
		if s.total(o) == 0 {
			t.Errorf("no request had the outcome %q", o)
		}
	}
}

// compareServers fails the test unless the lists of both servers match etcd.
// There must be no concurrent writes.
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
	for i := range s.Servers {
		var got []string
		for _, resource := range append(tenancy.GroupResources(kinds), namespaceResource) {
			body, err := of(s.clients[i][0].Get(), resource, "").Do(t.Context()).Raw()
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
			t.Errorf("server %d lists different objects (-etcd +server):\n%s", i, diff)
		}
	}
}
