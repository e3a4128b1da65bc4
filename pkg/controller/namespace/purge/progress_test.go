// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package purge

import (
	"fmt"
	"slices"
	"testing"
	"time"

	v1 "github.com/borough-io/borough/pkg/apis/tenancy/v1"
)

// life is a Namespace whose content waits, and a clock.
type life struct {
	*server
	deleter  *Deleter
	ns       *v1.Namespace
	progress *Progress
	writes   int
}

func newLife(t *testing.T, modify ...func(*v1.Namespace)) *life {
	s := newServer(t)
	l := &life{server: s, deleter: s.deleter(), ns: s.terminating(modify...), progress: &Progress{}}
	s.wrote = func(*v1.Namespace) { l.writes++ }
	return l
}

// pass makes a pass at so many seconds after the start. It returns how many
// seconds after the start the last progress was, or -1 for no status.
func (l *life) pass(second int) int {
	l.server.clock.SetTime(testTime.Add(time.Duration(second) * time.Second))
	if ns := l.get("ns"); ns != nil {
		l.ns = ns
	}
	_ = l.deleter.Delete(l.t.(*testing.T).Context(), l.ns, time.Time{}, l.progress) // it waits
	if ns := l.get("ns"); ns != nil && ns.Status.Termination != nil {
		return int(ns.Status.Termination.LastProgressTime.Sub(testTime) / time.Second)
	}
	return -1
}

// change lets the content of pods be changed.
func (l *life) change(change func([]*partial) []*partial) {
	l.server.mu.Lock()
	defer l.server.mu.Unlock()
	l.server.content[pods] = change(l.server.content[pods])
}

func (l *life) remove(name string) {
	l.change(func(all []*partial) []*partial {
		return slices.DeleteFunc(all, func(o *partial) bool { return o.Name == name })
	})
}

// TestLastProgress follows a termination with occasional progress.
func TestLastProgress(t *testing.T) {
	l := newLife(t, func(ns *v1.Namespace) { ns.Spec.Finalizers = append(ns.Spec.Finalizers, "example.com/other") })
	for i := range 8 {
		l.add(pods, object(fmt.Sprint(i), waits, finalizers("example.com/f", "example.com/g")))
	}
	expect := func(what string, second, want, writes int) {
		t.Helper()
		if got := l.pass(second); got != want || l.writes != writes {
			t.Errorf("%s: at %d the last progress was at %d after %d writes, want %d and %d", what, second, got, l.writes, want, writes)
		}
	}
	expect("the content is asked to go", 0, 0, 1)
	expect("nothing moves", 1000, 0, 1)
	l.remove("0")
	expect("an object goes", 2000, 2000, 2)
	expect("nothing moves", 3000, 2000, 2)
	l.change(func(all []*partial) []*partial {
		all[6].Finalizers = all[6].Finalizers[:1] // of an object that is not among the five
		return all
	})
	expect("a finalizer goes", 4000, 4000, 3)

	l.progress.Moved(testTime.Add(4500 * time.Second))
	l.remove("1")
	expect("an object was removed", 5000, 4500, 4)
	l.remove("2")
	expect("another, unseen", 6000, 6000, 5)

	l.before = func(verb, resource, _ string) error {
		if verb == "list" && resource == "pods" {
			return unavailable()
		}
		return nil
	}
	expect("what cannot be read has not moved", 7000, 6000, 6)
	l.before = nil
	expect("nor has it when it can be read again", 8000, 6000, 7)

	l.progress = &Progress{}
	expect("the controller was restarted", 9000, 6000, 7)
	l.progress = &Progress{}
	l.remove("3")
	expect("and again, while an object went", 10000, 10000, 8)

	l.server.mu.Lock()
	l.namespaces["ns"].Spec.Finalizers = []v1.FinalizerName{v1.FinalizerKubernetes}
	l.server.mu.Unlock()
	expect("a finalizer of the namespace goes", 11000, 11000, 9)
}

// TestFewWrites has a Namespace drain for hours, something of it in every pass.
// The intervals of the passes are those of the controller's backoff.
func TestFewWrites(t *testing.T) {
	l := newLife(t)
	for i := range 900 {
		l.add(pods, object(fmt.Sprintf("%04d", i), waits))
	}
	const end = 6 * time.Hour
	at, step := time.Duration(0), 100*time.Millisecond
	writes := map[time.Duration]int{}
	for i := 0; at < end; i++ {
		l.server.clock.SetTime(testTime.Add(at))
		l.ns = l.get("ns")
		_ = l.deleter.Delete(t.Context(), l.ns, time.Time{}, l.progress)
		for _, mark := range []time.Duration{30 * time.Second, time.Hour, end} {
			if at <= mark {
				writes[mark] = l.writes
			}
		}
		l.remove(fmt.Sprintf("%04d", i))
		at += step
		step = min(2*step, 30*time.Second)
	}
	if writes[30*time.Second] > 4 || writes[time.Hour] > 18 || writes[end] > 80 {
		t.Errorf("writes within %v", writes)
	}
	// Without further changes, the status becomes exact.
	var last int
	for second := 0; second <= int(maxWriteInterval/time.Second); second += 30 {
		last = l.pass(int(end/time.Second) + second)
	}
	left := len(l.names(pods))
	if got := l.get("ns").Status.Termination.Remaining[0]; *got.Count != int64(left) || left == 0 {
		t.Errorf("%d pods in the status, %d are left", *got.Count, left)
	}
	if behind := int(end/time.Second) - last; behind > 30 || behind < -30 {
		t.Errorf("last progress %d seconds before the end", behind)
	}

	// After a quiet time the interval is short again, with passes as rare as they get.
	before, early := l.writes, 0
	for i := range 100 {
		l.change(func(all []*partial) []*partial { return all[1:] })
		l.pass(int((end+time.Hour)/time.Second) + i*30)
		if i == 3 {
			early = l.writes - before
		}
	}
	if n := l.writes - before; early < 3 || n < 5 || n > 15 {
		t.Errorf("%d writes in two minutes, %d in fifty", early, n)
	}
}

// TestOverstatement shows that a status which says too much is replaced at
// once, however lately it was written.
func TestOverstatement(t *testing.T) {
	l := newLife(t)
	l.add(pods, object("a", waits))
	l.pass(0)
	l.remove("a")
	l.add(pods, object("b", waits, deleted))
	l.pass(0)
	if l.writes != 1 {
		t.Fatalf("%d writes for the same number of pods", l.writes)
	}
	l.add(pods, object("c", waits, deleted))
	l.pass(0)
	if got := l.get("ns").Status.Termination.Remaining[0]; l.writes != 2 || *got.Count != 2 {
		t.Errorf("%d writes, %d pods in the status, want 2", l.writes, *got.Count)
	}
	l.add(limitRanges, object("l", waits, deleted))
	l.pass(0)
	if got := l.get("ns").Status.Termination.Remaining; l.writes != 3 || len(got) != 2 {
		t.Errorf("%d writes, the status has %+v", l.writes, got)
	}
}

// TestLastWord shows that what the last pass found is written, however lately
// the status was, because nothing triggers another pass.
func TestLastWord(t *testing.T) {
	l := newLife(t, func(ns *v1.Namespace) { ns.Spec.Finalizers = append(ns.Spec.Finalizers, "example.com/other") })
	l.add(pods, object("a", waits))
	l.pass(0)
	l.remove("a")
	l.pass(0)
	got := l.get("ns")
	if l.writes != 2 || !slices.Contains(describe(got), contentGone) || len(got.Status.Termination.Remaining) > 0 {
		t.Errorf("%d writes, the status is %+v", l.writes, got.Status)
	}
	l.pass(0)
	if l.writes != 2 {
		t.Error("the same was written again")
	}
}
