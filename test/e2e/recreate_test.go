// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	v1 "github.com/borough-io/borough/pkg/apis/tenancy/v1"
	"github.com/borough-io/borough/test/harness"
	"github.com/borough-io/borough/test/poll"
)

// incarnation is a Namespace with a name that is used repeatedly, and the content
// that was created in it.
type incarnation struct {
	name    string
	uid     types.UID
	content map[string]types.UID // by resource and name
}

// newIncarnation creates a Namespace, checks that it has no content of an earlier
// one, and creates content with the same names each time.
func newIncarnation(t *testing.T, b *harness.Borough, name string, modify ...func(*v1.Pod)) *incarnation {
	t.Helper()
	ns, err := b.Client(t).TenancyV1().Namespaces().Create(t.Context(), &v1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatalf("create Namespace %s: %v", name, err)
	}
	in := &incarnation{name: name, uid: ns.UID, content: map[string]types.UID{}}
	in.check(t, b)
	for i := range 3 {
		pod := createPod(t, b, name, newPod(fmt.Sprintf("p%d", i), modify...))
		in.content["pods/"+pod.Name] = pod.UID
		in.check(t, b)
	}
	limitRange := createLimitRange(t, b, name, newLimitRange("l"))
	in.content["limitranges/l"] = limitRange.UID
	in.check(t, b)
	return in
}

// check fails the test unless the Namespace is unchanged and has exactly the
// content that was created in it.
func (in *incarnation) check(t *testing.T, b *harness.Borough) {
	t.Helper()
	client := b.Client(t).TenancyV1()
	ns, err := client.Namespaces().Get(t.Context(), in.name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if ns.UID != in.uid || ns.DeletionTimestamp != nil || len(ns.Spec.Finalizers) != 1 || len(ns.Status.Conditions) > 0 || ns.Status.Termination != nil {
		t.Errorf("Namespace %s, created with UID %s, was changed: %+v", in.name, in.uid, ns)
	}
	pods, err := client.Pods(in.name).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	limitRanges, err := client.LimitRanges(in.name).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	content := map[string]types.UID{}
	for _, pod := range pods.Items {
		content["pods/"+pod.Name] = pod.UID
		if pod.DeletionTimestamp != nil {
			t.Errorf("Pod %s of %s is being deleted", pod.Name, in.name)
		}
	}
	for _, limitRange := range limitRanges.Items {
		content["limitranges/"+limitRange.Name] = limitRange.UID
	}
	if diff := cmp.Diff(in.content, content); diff != "" {
		t.Errorf("content of %s (-created +found):\n%s", in.name, diff)
	}
}

// hold blocks one call of a controller.
type hold struct {
	call
	once     sync.Once
	reached  chan struct{} // closed when the call has arrived
	release  chan struct{} // closed to continue the call
	answered chan int      // the code of the response
}

// TestDelayedPurge blocks a controller at each step of a purge, at the request
// and at the response, until another controller has finished the purge and the
// Namespace has been created again. The blocked controller is like a leader that
// has lost its lease without noticing. Neither the step nor the steps that follow
// may affect the new Namespace.
func TestDelayedPurge(t *testing.T) {
	t.Parallel()
	b := harness.New(t)
	if err := b.StartServer(t.Context()); err != nil {
		t.Fatal(err)
	}
	var holds, gates sync.Map // by Namespace: *hold and chan struct{}
	stopDeposed := startProxiedController(t, b, func(ctx context.Context, c call) {
		at, ok := holds.Load(c.namespace)
		if !ok || at.(*hold).step != c.step {
			return
		}
		h := at.(*hold)
		if h.reply == c.reply {
			h.once.Do(func() {
				close(h.reached)
				wait(ctx, h.release)
			})
		}
		if c.reply {
			select {
			case h.answered <- c.code:
			default: // the controller has retried
			}
		}
	})
	stopLeader := startProxiedController(t, b, func(ctx context.Context, c call) {
		if gate, ok := gates.Load(c.namespace); ok {
			wait(ctx, gate.(chan struct{}))
		}
	})

	client := b.Client(t).TenancyV1()
	var recreated []*incarnation
	for i, test := range []struct {
		step string
		code int
		late int // the code when the request comes too late
	}{
		{"list pods", http.StatusOK, http.StatusOK},
		{"list limitranges", http.StatusOK, http.StatusOK},
		{"create namespacepurges", http.StatusCreated, http.StatusConflict},
		{"finalize", http.StatusOK, http.StatusConflict},
		{"status", http.StatusOK, http.StatusConflict},
	} {
		for _, reply := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s,reply=%t", test.step, reply), func(t *testing.T) {
				name := fmt.Sprintf("incarnation-%d-%t", i, reply)
				h := &hold{
					call:    call{step: test.step, reply: reply},
					reached: make(chan struct{}), release: make(chan struct{}), answered: make(chan int, 1),
				}
				holds.Store(name, h)
				gate := make(chan struct{})
				gates.Store(name, gate)
				// Also if the test fails: the proxies end when they hold no request.
				open, release := sync.OnceFunc(func() { close(gate) }), sync.OnceFunc(func() { close(h.release) })
				defer open()
				defer release()

				var modify []func(*v1.Pod)
				switch test.step {
				case "list pods", "list limitranges", "status": // which happen only if content is held
					modify = append(modify, func(pod *v1.Pod) { pod.Finalizers = []string{"example.com/hold"} })
				}
				old := newIncarnation(t, b, name, modify...)
				if test.step == "finalize" {
					// A purge does not finalize a Namespace that something else holds.
					patch := []byte(`{"metadata":{"finalizers":["example.com/hold"]}}`)
					if _, err := client.Namespaces().Patch(t.Context(), name, types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
						t.Fatal(err)
					}
				}
				deleteNamespace(t, b, name)
				poll.Eventually(t, func() string {
					select {
					case <-h.reached:
						return ""
					default:
						return "the controller has not reached this step"
					}
				})
				unhold := []byte(`{"metadata":{"finalizers":null}}`)
				for i := range 3 * len(modify) {
					if _, err := client.Pods(name).Patch(t.Context(), fmt.Sprintf("p%d", i), types.MergePatchType, unhold, metav1.PatchOptions{}); err != nil {
						t.Fatal(err)
					}
				}
				if test.step == "finalize" {
					if _, err := client.Namespaces().Patch(t.Context(), name, types.MergePatchType, unhold, metav1.PatchOptions{}); err != nil {
						t.Fatal(err)
					}
				}
				open()
				poll.Eventually(t, gone(t, b, name))

				in := newIncarnation(t, b, name)
				if in.uid == old.uid {
					t.Fatalf("both Namespaces have UID %s", in.uid)
				}
				recreated = append(recreated, in)
				release()
				want := test.code
				if !reply {
					want = test.late
				}
				if code := <-h.answered; code != want {
					t.Errorf("got code %d, want %d", code, want)
				}
				in.check(t, b)
			})
		}
	}
	// After the controllers have ended, no request is in flight.
	stopDeposed()
	stopLeader()
	for _, in := range recreated {
		in.check(t, b)
	}
}

// TestRandomlyDelayedPurges repeatedly deletes Namespaces and creates them again
// with the same names, while two controllers purge with random delays of requests
// and responses.
func TestRandomlyDelayedPurges(t *testing.T) {
	t.Parallel()
	const names, rounds, delay = 6, 12, 200 * time.Millisecond
	b := harness.New(t)
	if err := b.StartServer(t.Context()); err != nil {
		t.Fatal(err)
	}
	var conflicts atomic.Int64
	slow := func(ctx context.Context, c call) {
		if c.code == http.StatusConflict {
			conflicts.Add(1)
		}
		if rand.N(4) > 0 {
			return // so that one controller overtakes the other
		}
		timer := time.NewTimer(rand.N(delay))
		defer timer.Stop()
		select {
		case <-ctx.Done():
		case <-timer.C:
		}
	}
	stopOne, stopOther := startProxiedController(t, b, slow), startProxiedController(t, b, slow)

	last := make([]*incarnation, names)
	t.Run("rounds", func(t *testing.T) {
		for i := range names {
			t.Run(fmt.Sprint(i), func(t *testing.T) {
				t.Parallel()
				name := fmt.Sprintf("again-%d", i)
				uids := map[types.UID]bool{}
				for range rounds {
					in := newIncarnation(t, b, name)
					uids[in.uid] = true
					for range 20 { // while delayed requests arrive
						if in.check(t, b); t.Failed() {
							return
						}
					}
					deleteNamespace(t, b, name)
					poll.Eventually(t, gone(t, b, name))
				}
				if len(uids) != rounds {
					t.Errorf("%d UIDs in %d rounds", len(uids), rounds)
				}
				last[i] = newIncarnation(t, b, name)
			})
		}
	})
	stopOne()
	stopOther()
	for _, in := range last {
		if in != nil {
			in.check(t, b)
		}
	}
	t.Logf("%d incarnations of %d Namespaces; %d late calls returned 409", names*(rounds+1), names, conflicts.Load())
}

// wait waits until the channel is closed or the context is done.
func wait(ctx context.Context, c <-chan struct{}) {
	select {
	case <-ctx.Done():
	case <-c:
	}
}
