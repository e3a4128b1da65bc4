// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package rbac

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestTouches(t *testing.T) {
	const getsAll, getsOne, getsNone = "get tenancy.borough.io namespaces", "get tenancy.borough.io namespaces a", "get core pods"
	type changed struct {
		object  metav1.Object
		deleted bool
	}
	for name, tc := range map[string]struct {
		changes []changed
		want    string // user@namespace
	}{
		"a new binding":               {[]changed{{object: bind("b", "new", "ClusterRole", "get", "User:x", "User:y")}}, "x@b y@b"},
		"a new binding, no rights":    {[]changed{{object: bind("b", "new", "ClusterRole", "none", "User:x")}}, ""},
		"the same binding":            {[]changed{{object: bind("a", "b", "ClusterRole", "get", "User:1", "User:2", "User:3")}}, ""},
		"another order":               {[]changed{{object: bind("a", "b", "ClusterRole", "get", "User:3", "User:2", "User:1")}}, ""},
		"a subject more":              {[]changed{{object: bind("a", "b", "ClusterRole", "get", "User:1", "User:2", "User:3", "User:4")}}, "4@a"},
		"a subject replaced":          {[]changed{{object: bind("a", "b", "ClusterRole", "get", "User:1", "User:2", "User:4")}}, "3@a 4@a"},
		"another role, more rights":   {[]changed{{object: bind("a", "b", "ClusterRole", "view", "User:2", "User:4")}}, "1@a 2@a 3@a 4@a"},
		"another role, same rights":   {[]changed{{object: bind("a", "b", "ClusterRole", "same", "User:2", "User:3")}}, "1@a"},
		"another role, no rights":     {[]changed{{object: bind("a", "b", "ClusterRole", "none", "User:2")}}, "1@a 2@a 3@a"},
		"a binding deleted":           {[]changed{{bind("a", "b", "", ""), true}}, "1@a 2@a 3@a"},
		"a role with other rights":    {[]changed{{object: newClusterRole("get", getsOne)}}, "1@a 2@a 3@a"},
		"a role with the same rights": {[]changed{{object: newClusterRole("get", getsAll, getsNone)}}, ""},
		"both": {[]changed{
			{object: newClusterRole("get", getsOne)},
			{object: bind("a", "b", "ClusterRole", "get", "User:1", "User:4")},
		}, "1@a 2@a 3@a 4@a"},
		"two bindings of a subject": {[]changed{
			{object: bind("a", "c", "ClusterRole", "get", "User:5")},
			{object: bind("a", "d", "ClusterRole", "get", "User:5")},
		}, "5@a"},
	} {
		t.Run(name, func(t *testing.T) {
			x := newIndex(t,
				newClusterRole("get", getsAll), newClusterRole("same", getsAll), newClusterRole("view", getsAll), newClusterRole("none", getsNone),
				bind("a", "b", "ClusterRole", "get", "User:1", "User:2", "User:3"))
			var changes []Change
			for _, c := range tc.changes {
				changes = append(changes, changeOf(c.object, c.deleted))
			}
			var got []string
			for _, touch := range x.Apply(2, changes) {
				touched := x.Touched(&touch)
				for _, s := range touched {
					got = append(got, fmt.Sprintf("%s@%s", s.Name, touch.Namespace))
				}
				for i := range 6 {
					s := Subject{Name: fmt.Sprint(i)}
					if want := slices.Contains(touched, s); x.Touches(&touch, []Subject{{Name: "other"}, s}) != want {
						t.Errorf("%s is touched: want %t", s.Name, want)
					}
				}
			}
			slices.Sort(got)
			got = slices.Compact(got)
			if s := strings.Join(got, " "); s != tc.want {
				t.Errorf("got %s, want %s", s, tc.want)
			}
		})
	}
}

// TestBound checks that versions of bindings that have ended are those of no subject.
func TestBound(t *testing.T) {
	x := newIndex(t, bind("a", "b", "ClusterRole", "get", "User:1"))
	for revision := int64(2); revision <= 3; revision++ {
		x.Apply(revision, []Change{changeOf(bind("a", "b", "ClusterRole", "get", fmt.Sprint("User:", revision)), false)})
	}
	var got []string
	for s := range x.Bound("a", 3) {
		got = append(got, s.Name)
	}
	// That of revision 2 is in force before 3.
	if slices.Sort(got); !slices.Equal(got, []string{"2", "3"}) {
		t.Errorf("got %v", got)
	}
}

// TestTouchesOfRole checks that a change of a role touches each Namespace once, regardless of
// the bindings, and whom it concerns, also when these bindings have been deleted.
func TestTouchesOfRole(t *testing.T) {
	x := newIndex(t, newClusterRole("r"),
		bind("a", "1", "ClusterRole", "r", "User:u", "User:v"), bind("a", "2", "ClusterRole", "r", "User:u", "Group:g"),
		bind("a", "3", "ClusterRole", "other", "User:w"), bind("b", "1", "ClusterRole", "r", "User:u"), bind("c", "1", "ClusterRole", "r", "User:x"))
	x.Apply(2, []Change{changeOf(bind("c", "1", "", ""), true)})
	touches := x.Apply(3, []Change{changeOf(newClusterRole("r", "get tenancy.borough.io namespaces"), false)})
	for _, when := range []string{"at once", "after the bindings have been deleted"} {
		var got []string
		for i := range touches {
			touch := &touches[i]
			for _, s := range []Subject{{Name: "u"}, {Name: "v"}, {Group: true, Name: "g"}, {Name: "w"}, {Name: "x"}} {
				if x.Touches(touch, []Subject{s}) {
					got = append(got, s.Name+"@"+touch.Namespace)
				}
			}
			listed := x.Touched(touch)
			if when == "at once" && len(listed) != map[string]int{"a": 3, "b": 1}[touch.Namespace] {
				t.Errorf("in %s: touched %v", touch.Namespace, listed)
			}
		}
		if want := []string{"u@a", "v@a", "g@a", "u@b"}; !slices.Equal(got, want) {
			t.Errorf("%s: got %v, want %v", when, got, want)
		}
		x.Apply(4, []Change{changeOf(bind("a", "1", "", ""), true), changeOf(bind("a", "2", "", ""), true), changeOf(bind("b", "1", "", ""), true)})
	}
}
