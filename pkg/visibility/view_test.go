// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package visibility_test

import (
	"context"
	"testing"

	metainternalversion "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/endpoints/request"

	"k8s.io/apiserver/pkg/storage"

	"github.com/borough-io/borough/pkg/apis/tenancy"
)

// TestFor checks which requests are answered from a view.
func TestFor(t *testing.T) {
	f := newFixture(t)
	f.put(t, newNamespace("a"), newNamespace("b"))
	f.run(t)
	f.put(t, newRole("every", []string{"list", "watch"}))
	with := f.put(t, bind("", "e", "every", "u"))
	_, page := list(t, f.of("u"), metainternalversion.ListOptions{Limit: 1})
	continued := metainternalversion.ListOptions{Limit: 1, Continue: page.Continue}
	watchFrom := func(revision int64) metainternalversion.ListOptions {
		options := atRevision(revision)
		options.Watch = true
		return options
	}
	for name, tc := range map[string]struct {
		user    user.Info
		name    string // of the Namespace in the path, or of all
		options metainternalversion.ListOptions
		view    bool
	}{
		"list with the right":                      {&user.DefaultInfo{Name: "u"}, "", metainternalversion.ListOptions{}, false},
		"list without the right":                   {&user.DefaultInfo{Name: "v"}, "", metainternalversion.ListOptions{}, true},
		"list that a view has begun":               {&user.DefaultInfo{Name: "u"}, "", continued, true},
		"watch with the right":                     {&user.DefaultInfo{Name: "u"}, "", watchFrom(with), true},
		"watch that begins with the right":         {&user.DefaultInfo{Name: "u"}, "", metainternalversion.ListOptions{Watch: true}, true},
		"watch of one with the right":              {&user.DefaultInfo{Name: "u"}, "a", watchFrom(with), true},
		"watch of one, begins with the right":      {&user.DefaultInfo{Name: "u"}, "a", metainternalversion.ListOptions{Watch: true}, true},
		"watch of one without the right":           {&user.DefaultInfo{Name: "v"}, "a", watchFrom(with), true},
		"list of a member of system:masters":       {&user.DefaultInfo{Name: "v", Groups: []string{user.SystemPrivilegedGroup}}, "", metainternalversion.ListOptions{}, false},
		"request of the server, which has no user": {nil, "", metainternalversion.ListOptions{}, false},
	} {
		t.Run(name, func(t *testing.T) {
			info := &request.RequestInfo{IsResourceRequest: true, Verb: "list", APIGroup: tenancy.GroupName, APIVersion: "v1", Resource: "namespaces", Namespace: tc.name, Name: tc.name}
			if tc.options.Watch {
				info.Verb = "watch"
			}
			ctx := request.WithRequestInfo(t.Context(), info)
			if tc.user != nil {
				ctx = request.WithUser(ctx, tc.user)
			}
			for _, watch := range []bool{tc.options.Watch, false} { // with the path /watch/namespaces it is not set
				options := tc.options
				options.Watch = watch
				r, err := f.views.For(ctx, &options)
				byRight := r == nil
				if err == nil && r != nil {
					byRight, err = r.ByRight(ctx)
				}
				if err != nil || byRight == tc.view {
					t.Errorf("by right: %t, %v; want a view: %t", byRight, err, tc.view)
				}
			}
		})
	}
}

// TestHeldAt checks at which revisions a list is by right, not before the history.
func TestHeldAt(t *testing.T) {
	f := newFixture(t)
	before := f.put(t, newRole("every", []string{"list", "watch"}), bind("", "always", "every", "w"))
	f.run(t)
	without := f.put(t, newNamespace("a"))
	with := f.put(t, bind("", "e", "every", "u"))
	revoked := f.put(t, bind("", "e", "every", "v"))
	ctx := request.WithUser(t.Context(), &user.DefaultInfo{Name: "u"})
	ctx = request.WithRequestInfo(ctx, &request.RequestInfo{IsResourceRequest: true, Verb: "list", APIGroup: tenancy.GroupName, Resource: "namespaces"})
	r, err := f.views.For(ctx, &metainternalversion.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for revision, want := range map[int64]bool{before - 1: false, without: false, with: true, revoked: false} {
		if held, err := r.HeldAt(ctx, revision); err != nil || held != want {
			t.Errorf("at %d: %t, %v; want %t", revision, held, err, want)
		}
	}
	always, err := f.views.For(request.WithUser(ctx, &user.DefaultInfo{Name: "w"}), &metainternalversion.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for revision, want := range map[int64]bool{before - 1: false, before: true, revoked: true} { // the history begins with before
		if held, err := always.HeldAt(ctx, revision); err != nil || held != want {
			t.Errorf("at %d, of the user who always has it: %t, %v; want %t", revision, held, err, want)
		}
	}
	ended, cancel := context.WithCancel(ctx)
	cancel()
	if held, err := always.HeldAt(ended, revoked+1000); held || !storage.IsTooLargeResourceVersion(err) {
		t.Errorf("at a revision that is not reached: %t, %v", held, err)
	}
}
