// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package visibility_test

import (
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metainternalversion "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/endpoints/request"

	"k8s.io/apiserver/pkg/storage"

	"github.com/borough-io/borough/pkg/apis/tenancy"
)

func atRevision(revision int64) metainternalversion.ListOptions {
	return metainternalversion.ListOptions{ResourceVersion: fmt.Sprint(revision)}
}

// TestClusterRights checks that a watch follows the rights by ClusterRoleBindings that
// the user gets while it is open.
func TestClusterRights(t *testing.T) {
	f := newFixture(t)
	begin := f.put(t, newRole("named", []string{"get"}, "b", "c"), newRole("every", []string{"list"}), newNamespace("b"))
	f.run(t)
	options := atRevision(begin)
	options.AllowWatchBookmarks = true
	events := watch(t.Context(), t, f.of("u"), options, everything())
	want := func(kind, name string, version int64) {
		t.Helper()
		if got := next(t, events); got.kind != kind || got.name != name || got.version != fmt.Sprint(version) {
			t.Errorf("got %+v, want %s %s %d", got, kind, name, version)
		}
	}
	granted := f.put(t, bind("", "n", "named", "u"))
	want("ADDED", "b", begin)
	want("BOOKMARK", "", granted)
	f.put(t, newNamespace("a")) // which the user does not see
	want("ADDED", "c", f.put(t, newNamespace("c")))
	want("MODIFIED", "c", f.put(t, newNamespace("c", "gold")))
	granted = f.put(t, bind("", "e", "every", "u"))
	want("ADDED", "a", granted-3)
	want("BOOKMARK", "", granted)
	want("ADDED", "d", f.put(t, newNamespace("d")))
	revoked := f.write(t, nil, objects(bind("", "e", "every", "u")))
	want("DELETED", "a", revoked-1) // or a client that is cut off now would miss the next
	want("DELETED", "d", revoked)
	f.put(t, newNamespace("d", "gold"))
	want("MODIFIED", "b", f.put(t, newNamespace("b", "gold")))
	renamed := f.put(t, newRole("named", []string{"get"}, "c"))
	want("DELETED", "b", renamed)
	f.put(t, newNamespace("b", "silver"))
	want("DELETED", "c", f.write(t, nil, objects(newNamespace("c"))))
}

// TestResumeAfterEachEvent continues a watch behind each of its events, also where several
// are of one revision, and checks that the client misses nothing.
func TestResumeAfterEachEvent(t *testing.T) {
	f := newFixture(t)
	begin := f.put(t, newNamespace("a"), newNamespace("b"), newNamespace("c"), newNamespace("d"), newRole("named", []string{"get"}, "a", "b", "c"))
	f.run(t)
	f.put(t, bind("", "n", "named", "u"))
	f.put(t, newRole("named", []string{"get"}, "b", "d"))
	f.put(t, newRole("named", []string{"get"}, "a", "b", "c"))
	f.put(t, newRole("named", []string{"get"}, "d"))
	end := f.put(t, newNamespace("d", "gold")) // the last event
	// follow applies the events of a watch to a store, and returns the resourceVersions
	// and stores after each.
	follow := func(from string, bookmarks bool, store map[string]bool) (versions []string, stores []map[string]bool) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		events := watch(ctx, t, f.of("u"), metainternalversion.ListOptions{ResourceVersion: from, AllowWatchBookmarks: bookmarks}, everything())
		for {
			event := next(t, events)
			switch event.kind {
			case "ADDED", "MODIFIED":
				store[event.name] = true
			case "DELETED":
				delete(store, event.name)
			}
			versions, stores = append(versions, event.version), append(stores, maps.Clone(store))
			if event.version == fmt.Sprint(end) {
				return versions, stores
			}
		}
	}
	for _, bookmarks := range []bool{false, true} {
		versions, stores := follow(fmt.Sprint(begin), bookmarks, map[string]bool{})
		for i, version := range versions[:len(versions)-1] {
			store := maps.Clone(stores[i])
			follow(version, bookmarks, store)
			if len(store) != 1 || !store["d"] {
				t.Errorf("bookmarks %t: the client continues behind event %d of %v and then has %v, want d", bookmarks, i, versions, store)
			}
		}
	}
}

// TestInitialEvents checks the begin of a watch of a WatchList client, and of one that
// has never asked for initial events.
func TestInitialEvents(t *testing.T) {
	f := newFixture(t)
	begin := f.put(t, newRole("r", []string{"get"}), newNamespace("a"), newNamespace("b"), newNamespace("c"), bind("a", "x", "r", "u"), bind("c", "x", "r", "u"))
	f.run(t)
	for name, options := range map[string]metainternalversion.ListOptions{
		"most recent":    {SendInitialEvents: new(true), ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan},
		"any":            {SendInitialEvents: new(true), ResourceVersion: "0", ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan},
		"not older than": {SendInitialEvents: new(true), ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan},
		"not asked for":  {},
	} {
		t.Run(name, func(t *testing.T) {
			options.AllowWatchBookmarks = true
			if name == "not older than" {
				options.ResourceVersion = fmt.Sprint(begin)
			} else if err := f.views.Feed().Await(t.Context(), begin); err != nil {
				t.Fatal(err)
			}
			events := watch(t.Context(), t, f.of("u"), options, everything())
			for _, ns := range []string{"a", "c"} {
				if got := next(t, events); got.kind != "ADDED" || got.name != ns || got.version != fmt.Sprint(begin) {
					t.Errorf("got %+v, want %s ADDED at %d", got, ns, begin)
				}
			}
			if options.SendInitialEvents != nil {
				if got := next(t, events); got.kind != "BOOKMARK" || !got.initialEnd {
					t.Errorf("got %+v, want the closing bookmark", got)
				}
			}
			changed := f.put(t, newNamespace("b"), newNamespace("c"))
			if got := next(t, events); got.kind != "MODIFIED" || got.version != fmt.Sprint(changed) {
				t.Errorf("got %+v, want c MODIFIED at %d", got, changed)
			}
			begin = f.put(t, newNamespace("a"), newNamespace("c")) // for the next
		})
	}
	t.Run("refused", func(t *testing.T) {
		options := metainternalversion.ListOptions{Watch: true, SendInitialEvents: new(false), AllowWatchBookmarks: true}
		events := watch(t.Context(), t, f.of("u"), options, everything())
		changed := f.put(t, newNamespace("a"))
		if got := next(t, events); got.kind != "MODIFIED" || got.version != fmt.Sprint(changed) {
			t.Errorf("got %+v, want a MODIFIED at %d", got, changed)
		}
	})
}

// TestRevisions checks which revision a list is at, and the errors for those that it
// cannot be at.
func TestRevisions(t *testing.T) {
	f := newFixture(t)
	f.put(t, newNamespace("before"))
	old := f.put(t, newRole("r", []string{"get"}), newNamespace("a"), bind("a", "x", "r", "u"))
	floor := f.put(t, newNamespace("other"))
	f.run(t)
	u := f.of("u")

	outside, err := f.client.Put(t.Context(), "/outside", "")
	if err != nil {
		t.Fatal(err)
	}
	names, latest := list(t, u, metainternalversion.ListOptions{})
	wantNames(t, names, "a")
	if latest.ResourceVersion != fmt.Sprint(outside.Header.Revision) {
		t.Errorf("the most recent list is at %s, and etcd at %d", latest.ResourceVersion, outside.Header.Revision)
	}
	revoked := f.write(t, nil, objects(bind("a", "x", "r", "u")))
	names, _ = list(t, u, atRevision(revoked))
	wantNames(t, names)
	exact := atRevision(floor)
	exact.ResourceVersionMatch = metav1.ResourceVersionMatchExact
	names, _ = list(t, u, exact)
	wantNames(t, names, "a")
	limited := atRevision(floor) // the same, for compatibility
	limited.Limit = 5
	names, _ = list(t, u, limited)
	wantNames(t, names, "a")

	exact.ResourceVersion = fmt.Sprint(old)
	if _, err := u.List(t.Context(), &exact, everything()); !apierrors.IsResourceExpired(err) {
		t.Errorf("a list before the history: %v", err)
	}
	if err := watchError(t.Context(), t, u, atRevision(old)); !apierrors.IsResourceExpired(err) {
		t.Errorf("a watch from before the history: %v", err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for _, revision := range []uint64{uint64(revoked) + 1000, math.MaxInt64, math.MaxInt64 + 1, math.MaxUint64} {
		options := metainternalversion.ListOptions{ResourceVersion: fmt.Sprint(revision)}
		if _, err := u.List(ended, &options, everything()); !storage.IsTooLargeResourceVersion(err) {
			t.Errorf("a list at revision %d, which was not reached: %v", revision, err)
		}
		if err := watchError(ended, t, u, options); !storage.IsTooLargeResourceVersion(err) {
			t.Errorf("a watch from revision %d, which was not reached: %v", revision, err)
		}
	}
	for _, bad := range []metainternalversion.ListOptions{{ResourceVersion: "x"}, {Continue: "x"}, {Continue: "e30"}} {
		if _, err := u.List(t.Context(), &bad, everything()); !apierrors.IsBadRequest(err) {
			t.Errorf("%+v: %v", bad, err)
		}
	}
	invalid := metainternalversion.ListOptions{ResourceVersion: "x"}
	if _, err := u.Watch(t.Context(), &invalid, everything()); !apierrors.IsBadRequest(err) {
		t.Errorf("a watch from a resourceVersion that is not a number: %v", err)
	}
}

// TestNotSynced checks that a list is never empty because nothing was read yet.
func TestNotSynced(t *testing.T) {
	f := newFixture(t)
	ctx, cancel := context.WithCancel(request.WithUser(t.Context(), &user.DefaultInfo{Name: "u"}))
	cancel()
	ctx = request.WithRequestInfo(ctx, &request.RequestInfo{IsResourceRequest: true, Verb: "list", APIGroup: tenancy.GroupName, Resource: "namespaces"})
	view, err := f.views.For(ctx, &metainternalversion.ListOptions{})
	if !apierrors.IsServiceUnavailable(err) {
		t.Errorf("got %v, %v", view, err)
	}
	if seconds, ok := apierrors.SuggestsClientDelay(err); !ok || seconds == 0 {
		t.Errorf("the error has no Retry-After: %v", err)
	}
}

// TestLongHistory checks that a watch cannot begin in, and a list not continue from, a
// history that is forgotten, and that a new list with the token of the error can.
func TestLongHistory(t *testing.T) {
	f := newFixture(t)
	begin := f.put(t, newRole("r", []string{"get"}), newNamespace("a"), newNamespace("b"), bind("a", "x", "r", "u"), bind("b", "x", "r", "u"))
	f.run(t)
	u := f.of("u")
	_, page := list(t, u, metainternalversion.ListOptions{Limit: 1})
	open := watch(t.Context(), t, u, atRevision(begin), everything())
	later := f.put(t, newNamespace("c"))
	list(t, u, atRevision(later))
	f.views.Forget(later)

	if err := watchError(t.Context(), t, u, atRevision(begin)); !apierrors.IsResourceExpired(err) {
		t.Errorf("a watch: %v", err)
	}
	_, err := u.List(t.Context(), &metainternalversion.ListOptions{Continue: page.Continue}, everything())
	status, ok := err.(apierrors.APIStatus)
	if !apierrors.IsResourceExpired(err) || !ok || status.Status().Continue == "" {
		t.Fatalf("a list that continues: %v", err)
	}
	names, _ := list(t, u, metainternalversion.ListOptions{Continue: status.Status().Continue})
	wantNames(t, names, "b")
	// A watch that is open has seen what is forgotten.
	changed := f.put(t, newNamespace("a"))
	if got := next(t, open); got.kind != "MODIFIED" || got.version != fmt.Sprint(changed) {
		t.Errorf("got %+v", got)
	}
}

// TestDecodedNamespaces checks that lists and watches have the Namespaces that are decoded
// already, before or after the feed has them, only for their revisions, and leave them as
// they are.
func TestDecodedNamespaces(t *testing.T) {
	f := newFixture(t)
	f.put(t, newRole("every", []string{"list"}), bind("", "e", "every", "u"))
	mark := func(name, mark string) metav1.Object {
		ns := newNamespace(name)
		ns.Annotations = map[string]string{"mark": mark}
		return ns
	}
	begun := f.put(t, newNamespace("a"), newNamespace("b"))
	shared := f.decoded(t, mark("a", "before the feed runs"), begun)
	f.decoded(t, mark("b", "at an earlier revision"), begun-1)
	before := shared.DeepCopy()
	f.run(t)
	wantMarks := func(want ...string) {
		t.Helper()
		_, page := list(t, f.of("u"), metainternalversion.ListOptions{Limit: 10})
		var got []string
		for i := range page.Items {
			got = append(got, page.Items[i].Annotations["mark"])
		}
		if !slices.Equal(got, want) {
			t.Errorf("got the marks %q, want %q", got, want)
		}
	}
	wantMarks("before the feed runs", "")
	f.decoded(t, mark("b", "after the feed has it"), begun)
	wantMarks("before the feed runs", "after the feed has it")
	events := watch(t.Context(), t, f.of("u"), atRevision(begun), everything())
	revoked := f.write(t, nil, objects(bind("", "e", "every", "u")))
	for _, want := range []string{fmt.Sprint(revoked - 1), fmt.Sprint(revoked)} {
		if got := next(t, events); got.kind != "DELETED" || got.version != want {
			t.Errorf("got %+v, want DELETED %s", got, want)
		}
	}
	if !equality.Semantic.DeepEqual(shared, before) {
		t.Errorf("the Namespace was modified: %v", shared)
	}

	written := f.put(t, bind("", "e", "every", "u"))
	f.decoded(t, mark("a", "before it is written"), written+1)
	f.decoded(t, mark("b", "at a revision that is another's"), written+1)
	f.put(t, newNamespace("a"))
	wantMarks("before it is written", "after the feed has it")
	f.put(t, newNamespace("a"), newNamespace("b"))
	wantMarks("", "")
	f.decoded(t, mark("a", "too late"), written+1)
	wantMarks("", "")
}
