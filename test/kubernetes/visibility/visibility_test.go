// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package visibility

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	rbacclient "k8s.io/client-go/kubernetes/typed/rbac/v1"

	"github.com/borough-io/borough/pkg/generated/clientset/versioned"
	"github.com/borough-io/borough/test/kubernetes/replicas"
	"github.com/borough-io/borough/test/poll"
)

const (
	// writersPerServer is the number of writers to each server.
	writersPerServer = 2
	// writesPerRound is the number of acknowledged writes of a round, if no fault
	// makes it longer.
	writesPerRound = 60
	// writesDuringFault is the number of writes to wait for before a fault ends.
	writesDuringFault = 10
	// writesPerCut is the number of writes between two cuts of the connections of a
	// user.
	writesPerCut = 8
	// oldest is how many revisions ago a watch or a list of a reader may be.
	oldest = 300
	// probes is the number of watches from random revisions in each round.
	probes = 4
	// longDelay and shortDelay are the delays of the servers' watches of etcd, in turns.
	longDelay, shortDelay = 150 * time.Millisecond, 5 * time.Millisecond
	// roundTimeout bounds a round. Rounds take seconds, and minutes with a fault on a slow
	// machine.
	roundTimeout = 10 * time.Minute
	// requestTimeout bounds a request, which may get no response during a fault. A server
	// that runs answers within 60 seconds.
	requestTimeout = 90 * time.Second
	// backoff is the delay of a writer after a failure.
	backoff = 10 * time.Millisecond
	// reportEvery is the number of rounds between reports.
	reportEvery = 25
)

// exactness is the state of the test.
type exactness struct {
	replicas *replicas.Set
	history  *history
	users    []*user
	writers  []*writer
	probes   []*probe
	// floor is the newest revision that was acknowledged.
	floor atomic.Int64
	// faulty means that requests may fail because of faults.
	faulty  atomic.Bool
	written chan struct{} // gets a signal for each acknowledged write
	rounds  int

	mu     sync.Mutex
	counts map[string]int // acknowledged writes
}

// TestExactness checks that each user sees exactly the Namespaces that the user may get,
// at every revision.
func TestExactness(t *testing.T) {
	t.Logf("the seed is %d", *seed)
	x := newExactness(t)
	injected := map[string]int{}
	for x.rounds < *rounds {
		x.rounds++
		var fault *replicas.Fault
		if x.rounds%2 == 0 {
			fault = &replicas.Faults[x.rounds/2%len(replicas.Faults)]
			injected[fault.Name]++
		}
		x.faulty.Store(fault != nil)
		if err := x.round(t, fault); err != nil {
			t.Fatalf("round %d: %v", x.rounds, err)
		}
		if x.rounds%reportEvery == 0 {
			t.Log(x.report())
		}
	}
	t.Log(x.report())
	for name, n := range injected {
		t.Logf("%d times %s", n, name)
	}
	if *rounds >= 2*len(replicas.Faults) { // else some may be missing by chance
		x.verifyCoverage(t)
	}
}

func newExactness(t *testing.T) *exactness {
	t.Helper()
	identities := newIdentities()
	views := newViews(identities)
	x := &exactness{replicas: replicas.New(t), written: make(chan struct{}, 1), counts: map[string]int{}}
	x.history = newHistory(t.Context(), x.replicas.Client, views)
	for i := range x.replicas.Servers {
		for range writersPerServer {
			config := x.replicas.Servers[i].Config(t, "admin")
			config.Timeout = requestTimeout
			config.Dial = (&net.Dialer{}).DialContext // a separate connection
			clientset, err := versioned.NewForConfig(config)
			if err != nil {
				t.Fatal(err)
			}
			rights, err := rbacclient.NewForConfig(config)
			if err != nil {
				t.Fatal(err)
			}
			x.writers = append(x.writers, &writer{namespaces: clientset.TenancyV1().Namespaces(), rights: rights, users: identities})
		}
	}
	for i, view := range views {
		x.users = append(x.users, x.newUser(t, view, i))
	}
	return x
}

// random returns the random choices of a client in the current round.
func (x *exactness) random(client int) *rand.Rand {
	return rand.New(rand.NewPCG(*seed, uint64(x.rounds)<<32|uint64(client)))
}

// round writes, cuts connections, and then compares.
func (x *exactness) round(t *testing.T, fault *replicas.Fault) error {
	t.Helper()
	deadline, cancelDeadline := context.WithTimeoutCause(t.Context(), roundTimeout, fmt.Errorf("the round did not end within %s", roundTimeout))
	defer cancelDeadline()
	ctx, cancel := context.WithCancelCause(deadline)
	defer cancel(nil)
	x.replicas.Servers[x.rounds%2].SetDelay(longDelay)
	x.replicas.Servers[1-x.rounds%2].SetDelay(shortDelay)
	x.probe(t, x.random(0))

	over := make(chan struct{})
	var running, loading sync.WaitGroup
	start := func(group *sync.WaitGroup, run func() error) {
		group.Go(func() {
			if err := run(); err != nil {
				cancel(err) // the first one is the cause
			}
		})
	}
	for i, w := range x.writers {
		w.random = x.random(100 + i)
		start(&loading, func() error { return x.write(ctx, over, w) })
	}
	start(&loading, func() error { return x.read(ctx, over, x.random(1)) })
	start(&running, func() error { return x.cut(ctx, x.random(2)) })
	if fault != nil {
		start(&running, func() error { return x.inject(ctx, fault, x.random(3)) })
	}
	running.Wait()
	close(over)
	loading.Wait()
	if err := context.Cause(ctx); err != nil {
		return err
	}
	return x.compare(ctx)
}

// inject injects the fault when some writes were acknowledged.
func (x *exactness) inject(ctx context.Context, fault *replicas.Fault, r *rand.Rand) error {
	if err := x.awaitWrites(ctx, writesPerRound/4); err != nil {
		return err
	}
	return fault.Inject(ctx, x.replicas, r, func(ctx context.Context) error { return x.awaitWrites(ctx, writesDuringFault) })
}

// cut cuts connections of users off during the writes, and lets them connect to one of
// the servers: at once, or after further writes.
func (x *exactness) cut(ctx context.Context, r *rand.Rand) error {
	for range writesPerRound / writesPerCut {
		if err := x.awaitWrites(ctx, writesPerCut); err != nil {
			return err
		}
		u := x.users[r.IntN(len(x.users))]
		u.proxy.Redirect(addressOf(x.replicas.Servers[r.IntN(2)].Borough))
		if u.shared || r.IntN(2) > 0 {
			u.proxy.Drop()
			continue
		}
		u.proxy.Refuse()
		if err := errors.Join(x.awaitWrites(ctx, writesPerCut), u.proxy.Serve()); err != nil {
			return err
		}
	}
	return nil
}

// write sends writes until the round is over.
func (x *exactness) write(ctx context.Context, over <-chan struct{}, w *writer) error {
	for !poll.IsOver(ctx, over) {
		o := w.choose()
		obj, err := o.send(w, ctx)
		switch {
		case err == nil:
			if err := x.acknowledge(o, obj); err != nil {
				return err
			}
		case ctx.Err() != nil || isRefused(err):
		case !x.tolerates(err):
			return fmt.Errorf("%s: %w", o.name, err)
		default:
			_ = poll.Sleep(ctx, backoff) // returns early when the round ends
		}
	}
	return nil
}

func (x *exactness) acknowledge(o operation, obj metav1.Object) error {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.counts[o.name]++
	if obj != nil {
		revision, err := parseRevision(obj.GetResourceVersion())
		if err != nil {
			return err
		}
		x.floor.Store(max(x.floor.Load(), revision))
	}
	select {
	case x.written <- struct{}{}:
	default:
	}
	return nil
}

// tolerates reports whether a request may fail with the error.
func (x *exactness) tolerates(err error) bool {
	if strings.Contains(err.Error(), "etcdserver: ") {
		return true // on a busy machine etcd may elect another leader at any time
	}
	if !x.faulty.Load() {
		return false
	}
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return true // no response
	}
	code := status.Status().Code
	return code >= 500 || code == 429
}

// awaitWrites waits for acknowledged writes. It may miss some.
func (x *exactness) awaitWrites(ctx context.Context, n int) error {
	for range n {
		select {
		case <-x.written:
		case <-ctx.Done():
			return fmt.Errorf("wait for writes: %w", context.Cause(ctx))
		}
	}
	return nil
}

// compare waits until all terminations have finished and all users have exactly what
// they see. On the way it checks everything that they get.
func (x *exactness) compare(ctx context.Context) error {
	var violation error
	err := poll.Until(ctx, roundTimeout, func(ctx context.Context) error {
		if violation = x.verify(ctx); violation != nil {
			return nil
		}
		if names := x.history.terminating(); len(names) > 0 {
			return fmt.Errorf("terminating Namespaces: %v", names)
		}
		for _, u := range x.users {
			want := objects(u.view.now)
			if got := u.stored(); !slices.Equal(got, want) {
				return fmt.Errorf("%s has at %d (-want +got):\n%s\n%s", u.view.name, x.history.revision, cmp.Diff(texts(want), texts(got)), u.informer.describe())
			}
			if got := u.informer.replay.state(); !slices.Equal(got, want) {
				return fmt.Errorf("%s has got until %d (-want +got):\n%s", u.view.name, x.history.revision, cmp.Diff(texts(want), texts(got)))
			}
			if err := u.informer.missing(); err != nil {
				return err
			}
		}
		for _, p := range x.probes {
			if err := p.client.missing(); err != nil {
				return err
			}
		}
		return nil
	})
	return errors.Join(violation, err)
}

// verify checks all that was delivered so far.
func (x *exactness) verify(ctx context.Context) error {
	var clients []*client
	for _, u := range x.users {
		clients = append(clients, u.informer, u.reader)
	}
	for _, p := range x.probes {
		clients = append(clients, p.client)
	}
	return verifyAll(ctx, x.history, clients)
}

// verifyCoverage fails the test unless all kinds of writes and of reads were carried out.
func (x *exactness) verifyCoverage(t *testing.T) {
	t.Helper()
	for _, o := range operations {
		if x.counts[o.name] == 0 {
			t.Errorf("no write: %s", o.name)
		}
	}
	for what, n := range x.totals() {
		if n == 0 && what != "expired" && what != "failed" {
			t.Errorf("nothing was %s", what)
		}
	}
}

// totals returns how often what has happened.
func (x *exactness) totals() map[string]int {
	totals := map[string]int{}
	for _, u := range x.users {
		for _, c := range []*client{u.informer, u.reader} {
			totals["listed"] += c.lists
			totals["resumed"] += c.resumed
			totals["expired"] += c.expired
			totals["failed"] += c.failed
		}
		totals["watched"] += u.informer.events
		for _, c := range u.view.changes {
			switch {
			case c.before == nil && c.isGrant():
				totals["granted"]++
			case c.after == nil && x.history.policyRevisions[c.revision]:
				totals["revoked"]++
			}
		}
	}
	return totals
}

func (x *exactness) report() string {
	return fmt.Sprintf("%d rounds until revision %d, %v, acknowledged: %v", x.rounds, x.history.revision, x.totals(), x.counts)
}

func texts(objects []object) []string {
	var all []string
	for _, o := range objects {
		all = append(all, o.String())
	}
	return all
}
