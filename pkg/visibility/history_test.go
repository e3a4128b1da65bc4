// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package visibility_test

import (
	"fmt"
	"slices"
	"strconv"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metainternalversion "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/borough-io/borough/pkg/apis/tenancy"
	"github.com/borough-io/borough/pkg/authorization/rbac"
	"github.com/borough-io/borough/pkg/storage/changes"
	"github.com/borough-io/borough/pkg/storage/stored"
	"github.com/borough-io/borough/pkg/visibility"
)

// TestHistoryOfManySubjects checks that changes of bindings with very many subjects do not
// end the history, and that a watch that continues has those that concern its user.
func TestHistoryOfManySubjects(t *testing.T) {
	f := newFixture(t)
	begin := f.put(t, newRole("r", []string{"get"}), newNamespace("a"), newNamespace("b"))
	f.run(t)
	granted := f.put(t, bind("b", "x", "r", "u"))
	var last int64
	for change := range 10 {
		var users []string
		for i := range 10_000 {
			users = append(users, fmt.Sprintf("%d-%d", change, i))
		}
		last = f.put(t, bind("a", "many", "r", users...))
		f.await(t, last)
		list(t, f.of("u"), atRevision(last))
	}
	revoked := f.write(t, nil, objects(bind("b", "x", "r", "u"), bind("a", "many", "r")))
	f.await(t, revoked)
	list(t, f.of("u"), atRevision(revoked))

	options := atRevision(begin)
	options.AllowWatchBookmarks = true
	for _, user := range []struct {
		name, sees string
		from       int64
	}{{"u", "b", granted}, {"9-9999", "a", last}} {
		events := watch(t.Context(), t, f.of(user.name), options, everything())
		for _, want := range []watchEvent{
			{kind: "ADDED", name: user.sees, version: fmt.Sprint(begin)},
			{kind: "BOOKMARK", version: fmt.Sprint(user.from)},
			{kind: "DELETED", name: user.sees, version: fmt.Sprint(revoked)},
		} {
			if got := next(t, events); got != want {
				t.Errorf("%s: got %+v, want %+v", user.name, got, want)
			}
		}
	}
}

// TestResumeWhileChanging checks that watches that continue from before many changes, while there
// are more, have all of them in order.
func TestResumeWhileChanging(t *testing.T) {
	const before, more = 2500, 500
	f := newFixture(t)
	begin := f.put(t, newRole("r", []string{"get"}), bind("", "x", "r", "u"), newNamespace("a"))
	f.run(t)
	var last int64
	for range before {
		last = f.put(t, newNamespace("a"))
	}
	list(t, f.of("u"), atRevision(last))
	ns := newNamespace("a")
	data, err := runtime.Encode(f.codec, ns)
	if err != nil {
		t.Fatal(err)
	}
	written := make(chan struct{})
	go func() {
		defer close(written)
		for range more {
			if _, err := f.client.Put(t.Context(), keyOf(ns), string(data)); err != nil {
				t.Error(err)
			}
		}
	}()
	var watches []<-chan watchEvent
	for range 20 {
		watches = append(watches, watch(t.Context(), t, f.of("u"), atRevision(begin), everything()))
	}
	for _, events := range watches {
		for revision := begin + 1; revision <= last+more; revision++ {
			if got, want := next(t, events), (watchEvent{kind: "MODIFIED", name: "a", version: fmt.Sprint(revision)}); got != want {
				t.Fatalf("got %+v, want %+v", got, want)
			}
		}
	}
	<-written
}

// TestRestoredKey checks that users have the rights and see the Namespaces again that
// could not be decrypted, and that no watch continues from a revision before.
func TestRestoredKey(t *testing.T) {
	t.Parallel() // it waits for an interval
	f := newFixture(t)
	f.keyIsMissing.Store(true)
	f.put(t, newRole("r", []string{"get"}), newNamespace("a"), bind("a", "x", "r", "u"),
		newNamespace("b"), bind("b", "hidden", "r", "u"), newNamespace("hidden"), bind("hidden", "x", "r", "u"))
	f.run(t)
	names, before := list(t, f.of("u"), metainternalversion.ListOptions{})
	wantNames(t, names, "a")
	options := metainternalversion.ListOptions{ResourceVersion: before.ResourceVersion}
	open := watch(t.Context(), t, f.of("u"), options, everything())

	f.keyIsMissing.Store(false)
	if got := next(t, open); got.kind != "ERROR" || got.name != string(metav1.StatusReasonExpired) {
		t.Errorf("an open watch: got %+v", got)
	}
	if err := watchError(t.Context(), t, f.of("u"), options); !apierrors.IsResourceExpired(err) {
		t.Errorf("a watch from before: %v", err)
	}
	names, _ = list(t, f.of("u"), metainternalversion.ListOptions{})
	wantNames(t, names, "a", "b", "hidden")
}

// TestHistorySize checks that changes of large Namespaces do not keep many large versions,
// and that those of small ones do not end the history.
func TestHistorySize(t *testing.T) {
	const begin, last = 1, 300
	for name, tc := range map[string]struct {
		bytes             int
		earliest, highest int64 // where the history may begin
	}{
		"small": {1 << 10, begin, begin},
		"large": {1 << 20, 150, 200},
	} {
		t.Run(name, func(t *testing.T) {
			views := visibility.New(rbac.NewIndex(nil))
			views.Reset(begin, slices.Values([]changes.Change(nil)))
			resource := &stored.Resource{GroupResource: tenancy.Resource("namespaces")}
			for revision := int64(begin + 1); revision <= last; revision++ {
				change := changes.Change{Resource: resource, Name: "a", Revision: revision}
				if revision%10 > 0 { // otherwise it is deleted
					change.Value = make([]byte, tc.bytes)
				}
				views.Apply(revision, []changes.Change{change})
			}
			if oldest := views.Oldest(); oldest < tc.earliest || oldest > tc.highest {
				t.Errorf("the history begins at %d, want %d to %d", oldest, tc.earliest, tc.highest)
			}
		})
	}
}

// TestHeldBeforeStart checks that views whose feed does not run hold no more than the
// Namespaces that exist.
func TestHeldBeforeStart(t *testing.T) {
	_, merged := newMergedFixture(t)
	at := func(name string, revision int) *tenancy.Namespace {
		return &tenancy.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, ResourceVersion: strconv.Itoa(revision)}}
	}
	merged.Feed().Decoded(at("stays", 1))
	for i := range 10 {
		merged.Feed().Decoded(at(fmt.Sprint(i), 2+i))
		merged.Feed().Deleted(at(fmt.Sprint(i), 20+i))
	}
	merged.Feed().Decoded(at("again", 32))
	merged.Feed().Deleted(at("again", 31))
	if held := merged.Held(); held != 2 {
		t.Errorf("%d Namespaces are held, want 2", held)
	}
}
