// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package revocation

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/endpoints/request"

	"github.com/borough-io/borough/test/leaktest"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

// policy allows everything until it is revoked.
type policy struct {
	mu       sync.Mutex
	changed  chan struct{}
	decision authorizer.Decision
	err      error
	asked    []authorizer.Attributes
	// restless is for how many decisions the policy changes with each.
	restless int
	// changesIn is the namespace of all changes. It is empty if they concern the cluster.
	changesIn string
	// deciding is called during each decision, if it is set.
	deciding func()
}

func newPolicy() *policy {
	return &policy{changed: make(chan struct{}), decision: authorizer.DecisionAllow}
}

func (p *policy) Authorize(_ context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
	if p.deciding != nil {
		p.deciding()
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.asked = append(p.asked, a)
	if len(p.asked) <= p.restless {
		close(p.changed)
		p.changed = make(chan struct{})
	}
	return p.decision, "", p.err
}

func (p *policy) Changed(namespaces ...string) <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.changesIn != "" && !slices.Contains(namespaces, p.changesIn) {
		return nil
	}
	return p.changed
}

func (p *policy) change(decision authorizer.Decision, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.decision, p.err = decision, err
	close(p.changed)
	p.changed = make(chan struct{})
}

// start returns the watch that a user gets of a request, and that from storage.
func start(ctx context.Context, p *policy, u user.Info, info *request.RequestInfo) (watch.Interface, *watch.FakeWatcher) {
	inner := watch.NewFake()
	var outer watch.Interface
	handler := WithAttributes(http.HandlerFunc(func(_ http.ResponseWriter, req *http.Request) { outer = Watch(req.Context(), inner, p) }))
	ctx = request.WithUser(request.WithRequestInfo(ctx, info), u)
	handler.ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(ctx, http.MethodGet, "/", nil))
	return outer, inner
}

var (
	alice = &user.DefaultInfo{Name: "alice"}
	pods  = &request.RequestInfo{IsResourceRequest: true, Verb: "watch", Resource: "pods", Namespace: "a"}
)

func TestRevoke(t *testing.T) {
	p := newPolicy()
	outer, inner := start(t.Context(), p, alice, pods)
	defer outer.Stop()
	inner.Add(&metav1.Status{Message: "1"})
	if event := <-outer.ResultChan(); event.Type != watch.Added || event.Object.(*metav1.Status).Message != "1" {
		t.Fatalf("got %v", event)
	}
	// Changes that do not concern the watch, and a policy that cannot decide.
	p.change(authorizer.DecisionAllow, nil)
	p.change(authorizer.DecisionNoOpinion, errors.New("not ready"))
	inner.Add(&metav1.Status{Message: "2"})
	if event := <-outer.ResultChan(); event.Type != watch.Added {
		t.Fatalf("got %v", event)
	}
	p.change(authorizer.DecisionNoOpinion, nil)
	event := <-outer.ResultChan()
	status, ok := event.Object.(*metav1.Status)
	if event.Type != watch.Error || !ok || status.Code != http.StatusForbidden || !strings.Contains(status.Message, `User "alice" cannot watch resource "pods"`) {
		t.Fatalf("got %v", event)
	}
	if event, open := <-outer.ResultChan(); open {
		t.Errorf("after the revocation: %v", event)
	}
	if a := p.asked[0]; a.GetVerb() != "watch" || a.GetNamespace() != "a" || a.GetUser() != alice {
		t.Errorf("asked about %+v", a)
	}
}

// TestNothingAfterRevocation revokes while an event waits for the client.
func TestNothingAfterRevocation(t *testing.T) {
	p := newPolicy()
	outer, inner := start(t.Context(), p, alice, pods)
	defer outer.Stop()
	inner.Add(&metav1.Status{Message: "pending"}) // returns when it was taken
	p.change(authorizer.DecisionNoOpinion, nil)
	for event := range outer.ResultChan() {
		if event.Type != watch.Error {
			t.Errorf("got %v", event)
		}
	}
}

// TestChangesDoNotDelayEvents checks that events are sent while the policy changes all
// the time, with one decision for each.
func TestChangesDoNotDelayEvents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const events = 50
		p := newPolicy()
		p.restless = 10 * events
		outer, inner := start(t.Context(), p, alice, pods)
		defer outer.Stop()
		begin := time.Now() // of the bubble, where only timers take time
		for i := range events {
			go inner.Add(&metav1.Status{Code: int32(i)})
			if event := <-outer.ResultChan(); event.Object.(*metav1.Status).Code != int32(i) {
				t.Fatalf("got %v, want event %d", event, i)
			}
		}
		if waited := time.Since(begin); waited > 0 {
			t.Errorf("the events have waited for %v", waited)
		}
		synctest.Wait()
		if n := len(p.asked); n > events+1 {
			t.Errorf("%d decisions for %d events", n, events)
		}
	})
}

// TestDecisionsWithoutEvents checks that many changes cause few decisions while there is
// no event, or one that the client does not receive.
func TestDecisionsWithoutEvents(t *testing.T) {
	for name, pending := range map[string]bool{"no event": false, "an event that waits": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := newPolicy()
				outer, inner := start(t.Context(), p, alice, pods)
				defer outer.Stop()
				if pending {
					inner.Add(&metav1.Status{})
				}
				for range 1000 {
					p.change(authorizer.DecisionAllow, nil)
					time.Sleep(interval / 100)
				}
				synctest.Wait()
				if n := len(p.asked); n < 10 || n > 12 {
					t.Errorf("%d decisions in 10 intervals", n)
				}
				p.change(authorizer.DecisionNoOpinion, nil)
				time.Sleep(interval)
				if event := <-outer.ResultChan(); event.Type != watch.Error {
					t.Errorf("after the revocation: %v", event)
				}
			})
		})
	}
}

// TestTurns checks that decisions about many watches in one namespace are made one after the
// other, and do not wait when the watch ends.
func TestTurns(t *testing.T) {
	const watches = 10
	p := newPolicy()
	deciding, release, ended := make(chan struct{}, watches), make(chan struct{}), make(chan struct{}, watches)
	p.deciding = func() {
		deciding <- struct{}{}
		<-release
	}
	var all []watch.Interface
	for range watches {
		outer, _ := start(t.Context(), p, alice, pods)
		all = append(all, outer)
	}
	<-deciding
	for _, outer := range all {
		outer.Stop()
		go func() {
			for range outer.ResultChan() { // until it is closed
			}
			ended <- struct{}{}
		}()
	}
	for range watches - 1 {
		select {
		case <-ended:
		case <-deciding:
			t.Error("two decisions at once")
		}
	}
	elsewhere := *pods
	elsewhere.Namespace = "b"
	other, _ := start(t.Context(), p, alice, &elsewhere)
	<-deciding // at the same time
	other.Stop()
	close(release)
	<-ended
	for range other.ResultChan() { // until it is closed
	}
	decisions.mu.Lock()
	defer decisions.mu.Unlock()
	if n := len(decisions.of); n > 0 {
		t.Errorf("%d namespaces without watches have turns", n)
	}
}

// TestRevokedBefore revokes between the authorization of the request and its watch.
func TestRevokedBefore(t *testing.T) {
	p := newPolicy()
	p.change(authorizer.DecisionNoOpinion, nil)
	outer, _ := start(t.Context(), p, alice, pods)
	defer outer.Stop()
	if event := <-outer.ResultChan(); event.Type != watch.Error {
		t.Errorf("got %v", event)
	}
}

// TestRevokedInNamespace revokes in the namespace of the watch, and in that of a service account
// that its client impersonates.
func TestRevokedInNamespace(t *testing.T) {
	for _, namespace := range []string{"a", "b"} {
		synctest.Test(t, func(t *testing.T) {
			p := newPolicy()
			p.changesIn = namespace
			account := authorizer.AttributesRecord{User: alice, Verb: "impersonate", Resource: "serviceaccounts", Namespace: "b", Name: "x", ResourceRequest: true}
			ctx := context.WithValue(t.Context(), impersonationKey{}, &impersonation{allowed: []authorizer.Attributes{account}})
			outer, _ := start(ctx, p, alice, pods)
			defer outer.Stop()
			synctest.Wait() // until the first decision
			p.change(authorizer.DecisionNoOpinion, nil)
			time.Sleep(interval) // until the next one is due
			synctest.Wait()
			select {
			case event := <-outer.ResultChan():
				if event.Type != watch.Error {
					t.Errorf("got %v", event)
				}
			default:
				t.Errorf("the watch continues after a change in %s", namespace)
			}
		})
	}
}

func TestEnds(t *testing.T) {
	for name, end := range map[string]func(cancel context.CancelFunc, outer watch.Interface, inner *watch.FakeWatcher){
		"by the client":  func(_ context.CancelFunc, outer watch.Interface, _ *watch.FakeWatcher) { outer.Stop(); outer.Stop() },
		"by the storage": func(_ context.CancelFunc, _ watch.Interface, inner *watch.FakeWatcher) { inner.Stop() },
		"by the context": func(cancel context.CancelFunc, _ watch.Interface, _ *watch.FakeWatcher) { cancel() },
		"with a slow client": func(_ context.CancelFunc, outer watch.Interface, inner *watch.FakeWatcher) {
			inner.Add(&metav1.Status{})
			outer.Stop()
		},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			outer, inner := start(ctx, newPolicy(), alice, pods)
			end(cancel, outer, inner)
			for range outer.ResultChan() { // until it is closed
			}
			if !inner.IsStopped() {
				t.Error("the watch of the storage continues")
			}
		})
	}
}

func TestUnlimited(t *testing.T) {
	for name, tc := range map[string]struct {
		user user.Info
		info *request.RequestInfo
	}{
		"system:masters": {&user.DefaultInfo{Name: "admin", Groups: []string{user.SystemPrivilegedGroup}}, pods},
		"not a watch":    {alice, &request.RequestInfo{IsResourceRequest: true, Verb: "list", Resource: "pods"}},
	} {
		t.Run(name, func(t *testing.T) {
			outer, inner := start(t.Context(), newPolicy(), tc.user, tc.info)
			if outer != watch.Interface(inner) {
				t.Error("the watch is wrapped")
			}
		})
	}
}
