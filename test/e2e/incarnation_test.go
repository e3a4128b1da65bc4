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
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	v1 "github.com/borough-io/borough/pkg/apis/tenancy/v1"
	"github.com/borough-io/borough/test/e2e/harness"
)

// incarnation is one life of a Namespace, with what was created in it.
type incarnation struct {
	name    string
	uid     types.UID
	content map[string]types.UID // by resource and name
}

// newIncarnation creates a Namespace, in which nothing may be of an earlier one,
// and content that has the same names in each.
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

// check fails the test unless the Namespace is as it was created, with all of
// its content and no other.
func (in *incarnation) check(t *testing.T, b *harness.Borough) {
	t.Helper()
	client := b.Client(t).TenancyV1()
	ns, err := client.Namespaces().Get(t.Context(), in.name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if ns.UID != in.uid || ns.DeletionTimestamp != nil || len(ns.Spec.Finalizers) != 1 || len(ns.Status.Conditions) > 0 || ns.Status.Termination != nil {
		t.Errorf("Namespace %s was touched, it was %s: %+v", in.name, in.uid, ns)
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

// hold keeps one call of a controller.
type hold struct {
	call
	once     sync.Once
	reached  chan struct{} // closed when the call is there
	release  chan struct{} // closed to let it go on
	answered chan int      // the code of the reply
}

// TestIncarnation holds a controller up at every step of a purge, on the way
// there and on the way back, until another controller has finished the purge
// and the Namespace has been created again: a leader that was deposed and does
// not know yet. Neither the step nor what follows from it harms the new one.
func TestIncarnation(t *testing.T) {
	b := harness.New(t)
	if err := b.StartServer(t.Context()); err != nil {
		t.Fatal(err)
	}
	var holds, gates sync.Map // by Namespace: *hold and chan struct{}
	stopDeposed := detour(t, b, func(ctx context.Context, c call) {
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
			default: // the controller came again
			}
		}
	})
	stopLeader := detour(t, b, func(ctx context.Context, c call) {
		if gate, ok := gates.Load(c.namespace); ok {
			wait(ctx, gate.(chan struct{}))
		}
	})

	client := b.Client(t).TenancyV1()
	var reborn []*incarnation
	for i, test := range []struct {
		step string
		late int // the code when the request comes too late
	}{
		{"list pods", http.StatusOK},
		{"list limitranges", http.StatusOK},
		{"deletecollection pods", http.StatusConflict},
		{"deletecollection limitranges", http.StatusConflict},
		{"finalize", http.StatusConflict},
		{"status", http.StatusConflict},
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

				var modify []func(*v1.Pod)
				switch test.step {
				case "list pods", "list limitranges", "status": // which come only if something holds
					modify = append(modify, func(pod *v1.Pod) { pod.Finalizers = []string{"example.com/hold"} })
				}
				old := newIncarnation(t, b, name, modify...)
				deleteNamespace(t, b, name)
				harness.Eventually(t, func() string {
					select {
					case <-h.reached:
						return ""
					default:
						return "the controller has not come to this step"
					}
				})
				if modify != nil {
					for i := range 3 {
						patch := []byte(`{"metadata":{"finalizers":null}}`)
						if _, err := client.Pods(name).Patch(t.Context(), fmt.Sprintf("p%d", i), types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
							t.Fatal(err)
						}
					}
				}
				close(gate)
				harness.Eventually(t, gone(t, b, name))

				in := newIncarnation(t, b, name)
				if in.uid == old.uid {
					t.Fatalf("both are %s", in.uid)
				}
				reborn = append(reborn, in)
				close(h.release)
				want := http.StatusOK
				if !reply {
					want = test.late
				}
				if code := <-h.answered; code != want {
					t.Errorf("the call was answered with %d, want %d", code, want)
				}
				in.check(t, b)
			})
		}
	}
	// When they have ended, nothing is on its way any more.
	stopDeposed()
	stopLeader()
	for _, in := range reborn {
		in.check(t, b)
	}
}

// TestIncarnations deletes Namespaces and creates them again under their names,
// over and over, while two controllers purge with requests and replies that
// take their time.
func TestIncarnations(t *testing.T) {
	const names, rounds, delay = 6, 12, 200 * time.Millisecond
	b := harness.New(t)
	if err := b.StartServer(t.Context()); err != nil {
		t.Fatal(err)
	}
	var refused atomic.Int64
	slow := func(ctx context.Context, c call) {
		if c.code == http.StatusConflict {
			refused.Add(1)
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
	stopOne, stopOther := detour(t, b, slow), detour(t, b, slow)

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
					for range 20 { // while what is late arrives
						if in.check(t, b); t.Failed() {
							return
						}
					}
					deleteNamespace(t, b, name)
					harness.Eventually(t, gone(t, b, name))
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
	t.Logf("%d incarnations of %d Namespaces; %d calls were refused because they came too late", names*(rounds+1), names, refused.Load())
}

// TestPurgeHeader: a deletecollection that is bound to a Namespace, as plain
// requests see it.
func TestPurgeHeader(t *testing.T) {
	b := alone
	name := newNamespace(t, b)
	createPod(t, b, name, newPod("free"))
	createPod(t, b, name, newPod("held", func(pod *v1.Pod) { pod.Finalizers = []string{"example.com/hold"} }))
	http := b.HTTP(t)
	purge := func(uid types.UID) harness.Answer {
		t.Helper()
		return http.Do(t, "DELETE", api+"/namespaces/"+name+"/pods", []byte(`{"propagationPolicy":"Background"}`),
			"Content-Type", asJSON, v1.NamespaceUIDHeader, string(uid))
	}
	client := b.Client(t).TenancyV1()
	ns, err := client.Namespaces().Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	wantStatus(t, purge(ns.UID), 409, "a namespace that is being deleted, this one is not")
	deleteNamespace(t, b, name)
	wantStatus(t, purge("another"), 409, "a namespace with UID another, this one has UID "+string(ns.UID))
	wantStatus(t, purge(""), 409, "this one has UID "+string(ns.UID))
	if pods, err := client.Pods(name).List(t.Context(), metav1.ListOptions{}); err != nil || len(pods.Items) != 2 {
		t.Fatalf("%d Pods are left, error %v", len(pods.Items), err)
	}

	answer := wantAnswer(t, purge(ns.UID), 200)
	if status := answer.Status(); status.Status != metav1.StatusSuccess || answer.Header.Get(v1.RemainingObjectsHeader) != "1" {
		t.Errorf("got %v with %v", answer, answer.Header)
	}
	if _, err := client.Pods(name).Get(t.Context(), "free", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("the Pod that nothing holds: %v", err)
	}
	patch := []byte(`{"metadata":{"finalizers":null}}`)
	if _, err := client.Pods(name).Patch(t.Context(), "held", types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	if answer := wantAnswer(t, purge(ns.UID), 200); answer.Header.Get(v1.RemainingObjectsHeader) != "0" {
		t.Errorf("got %v with %v", answer, answer.Header)
	}
	finalize(t, b, name)
	wantStatus(t, purge(ns.UID), 404, `"`+name+`" not found`)
}

// wait returns when the channel is closed, or the context done.
func wait(ctx context.Context, c <-chan struct{}) {
	select {
	case <-ctx.Done():
	case <-c:
	}
}
