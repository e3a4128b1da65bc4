// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package limitranger

import (
	"fmt"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"

	v1 "github.com/borough-io/borough/pkg/apis/tenancy/v1"
)

// TestForget checks that what was read is dropped when the watch has reached it, also after the
// last LimitRange of a Namespace is deleted: it can be large.
func TestForget(t *testing.T) {
	for name, tc := range map[string]struct {
		event func(x *index, limitRange *v1.LimitRange)
		kept  map[string]bool // by the revision of the event
	}{
		"an add":      {func(x *index, l *v1.LimitRange) { x.OnAdd(l, false) }, map[string]bool{"4": true, "5": false, "6": false}},
		"an update":   {func(x *index, l *v1.LimitRange) { x.OnUpdate(l, l) }, map[string]bool{"4": true, "5": false, "6": false}},
		"a deletion":  {func(x *index, l *v1.LimitRange) { x.OnDelete(l) }, map[string]bool{"4": true, "5": false, "6": false}},
		"of another":  {func(x *index, l *v1.LimitRange) { l.Namespace = "b"; x.OnDelete(l) }, map[string]bool{"6": true}},
		"of no known": {func(x *index, l *v1.LimitRange) { l.ResourceVersion = "x"; x.OnDelete(l) }, map[string]bool{"": true}},
	} {
		t.Run(name, func(t *testing.T) {
			for revision, kept := range tc.kept {
				s := newSource()
				s.reads.last.Add("a", &read{found: none, revision: 5})
				tc.event(s.index, &v1.LimitRange{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "l", ResourceVersion: revision}})
				if _, readAt := s.reads.latest("a"); (readAt == 5) != kept {
					t.Errorf("after an event at %q, the read is at %d", revision, readAt)
				}
			}
		})
	}
}

// TestSnapshots checks that what was found does not change with later events, that it is
// sorted, and that a deletion that the watch has missed removes a LimitRange.
func TestSnapshots(t *testing.T) {
	x := newIndex(func(string, int64) {})
	names := func(found *inNamespace) (names []string) {
		for _, limitRange := range found.limitRanges {
			if limitRange == nil {
				names = append(names, "nil")
				continue
			}
			names = append(names, limitRange.Name)
		}
		return names
	}
	newLimitRange := func(name string) *v1.LimitRange {
		return &v1.LimitRange{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, ResourceVersion: "1"}}
	}
	var found []*inNamespace
	want := []string{"[b]", "[a b]", "[a b]", "[b]", "[]"}
	for _, event := range []func(){
		func() { x.OnAdd(newLimitRange("b"), false) },
		func() { x.OnAdd(newLimitRange("a"), false) },
		func() { x.OnUpdate(nil, newLimitRange("a")) },
		func() { x.OnDelete(newLimitRange("a")) },
		func() { x.OnDelete(cache.DeletedFinalStateUnknown{Key: "ns/b", Obj: newLimitRange("b")}) },
	} {
		event()
		now, _ := x.in("ns")
		found = append(found, now)
	}
	for i, found := range found {
		if got := fmt.Sprint(names(found)); got != want[i] {
			t.Errorf("after event %d: got %s, want %s", i, got, want[i])
		}
	}
	if len(x.byNamespace) != 0 {
		t.Errorf("%d Namespaces without LimitRanges are kept", len(x.byNamespace))
	}
}
