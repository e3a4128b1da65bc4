// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package visibility_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metainternalversion "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apiserver/pkg/storage"

	"github.com/borough-io/borough/pkg/apis/tenancy"
	"github.com/borough-io/borough/pkg/registry/tenancy/namespace"
	"github.com/borough-io/borough/pkg/visibility"
)

// TestPages lists all Namespaces in pages of each size, while others are created and
// deleted: the pages have what there was at the first, also behind a Namespace that
// cannot be read, and the number of those that remain.
func TestPages(t *testing.T) {
	f := newFixture(t)
	prefix := prefixOf(tenancy.Resource("namespaces"))
	var want []string
	for i := range 20 {
		ns := newNamespace(fmt.Sprintf("n%02d", i))
		if i%7 == 3 {
			if _, err := f.client.Put(t.Context(), prefix+ns.Name, "unreadable"); err != nil {
				t.Fatal(err)
			}
			continue
		}
		f.put(t, ns)
		want = append(want, ns.Name)
	}
	f.run(t)
	f.put(t, newRole("every", []string{"list"}), bind("", "e", "every", "u"))
	// Of these, some do not exist.
	f.put(t, newRole("named", []string{"get"}, slices.Concat(want[:8], []string{"m1", "m2", "m3", "n02x", "n02y", "n02z", "z"})...), bind("", "n", "named", "v"), newRole("get", []string{"get"}))
	for _, name := range want[6:] {
		f.put(t, bind(name, "b", "get", "v"), bind(name, "c", "get", "v"))
	}
	views := map[string]*visibility.View{"of everything": f.views.Everything(), "of a user with the right to all": f.of("u"), "of a user with the right to each": f.of("v")}
	for limit := int64(1); limit <= 21; limit++ {
		for name, view := range views {
			got, page := list(t, view, metainternalversion.ListOptions{Limit: limit})
			if name == "of everything" {
				f.write(t, objects(newNamespace(fmt.Sprintf("n05-%d", limit))), objects(newNamespace(fmt.Sprintf("n05-%d", limit-1))))
			}
			revision := page.ResourceVersion
			for page.Continue != "" {
				before := *page.RemainingItemCount
				var more []string
				more, page = list(t, view, metainternalversion.ListOptions{Limit: limit, Continue: page.Continue})
				got = append(got, more...)
				if left := page.RemainingItemCount; page.ResourceVersion != revision || int64(len(more)) > limit ||
					left != nil && *left > before-int64(len(more)) || left == nil && before > limit+3 {
					t.Errorf("%s, limit %d: %v follow, of %d, at %s; %v remain", name, limit, more, before, page.ResourceVersion, left)
				}
			}
			if got = slices.DeleteFunc(got, func(name string) bool { return len(name) > 3 }); !slices.Equal(got, want) {
				t.Errorf("%s, limit %d: got %v, want %v", name, limit, got, want)
			}
		}
	}
}

// TestTokens continues lists with tokens that the view has not made, or not like this.
func TestTokens(t *testing.T) {
	f := newFixture(t)
	f.put(t, newNamespace("a"), newNamespace("b"))
	revision := f.put(t, newNamespace("c"))
	f.run(t)
	for key, want := range map[string][]string{
		"/a\x00":                       {"b"},
		"/view/b":                      {"b"},
		"/view/2/b":                    {"b"},
		"/view/-1/b":                   {"b"},
		"/view/all-2/b":                {"b"},
		"/view/all--1/b":               {"b"},
		"/view/99999999999999999999/b": {"b"},
		"/view/x/c":                    {"c"},
		"/view/9/d":                    {},
	} {
		token, err := storage.EncodeContinue(key, "/", revision)
		if err != nil {
			t.Fatal(err)
		}
		names, page := list(t, f.views.Everything(), metainternalversion.ListOptions{Limit: 1, Continue: token})
		if !slices.Equal(names, want) {
			t.Errorf("%q: got %v, want %v", key, names, want)
		}
		if page.Continue != "" && *page.RemainingItemCount != 1 {
			t.Errorf("%q: %d remain, want 1", key, *page.RemainingItemCount)
		}
	}
}

// TestContinue continues lists: at the revision of the first page, which has to be reached, and
// which the client must not choose. What a selector leaves out is not counted.
func TestContinue(t *testing.T) {
	f := newFixture(t)
	f.put(t, newNamespace("a", "x"), newNamespace("b"))
	revision := f.put(t, newNamespace("c", "x"))
	f.run(t)
	f.await(t, revision)
	tokenAt := func(revision int64) string {
		token, err := storage.EncodeContinue("/view/2/b", "/", revision)
		if err != nil {
			t.Fatal(err)
		}
		return token
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	// etcd can have answered at the same time.
	unknown := func(err error) bool { return apierrors.IsTimeout(err) || errors.Is(err, context.Canceled) }
	for name, tc := range map[string]struct {
		options metainternalversion.ListOptions
		is      func(error) bool
	}{
		"at the revision of the token": {metainternalversion.ListOptions{Continue: tokenAt(revision)}, func(err error) bool { return err == nil }},
		"of any revision":              {metainternalversion.ListOptions{Continue: tokenAt(revision), ResourceVersion: "0"}, func(err error) bool { return err == nil }},
		"at another revision":          {metainternalversion.ListOptions{Continue: tokenAt(revision), ResourceVersion: fmt.Sprint(revision)}, apierrors.IsBadRequest},
		"not reached":                  {metainternalversion.ListOptions{Continue: tokenAt(revision + 1)}, storage.IsTooLargeResourceVersion},
		"at the current revision":      {metainternalversion.ListOptions{Continue: tokenAt(-1)}, unknown},
	} {
		ctx := t.Context()
		if !tc.is(nil) {
			ctx = ended
		}
		if _, err := f.views.Everything().List(ctx, &tc.options, everything()); !tc.is(err) {
			t.Errorf("%s: got %v", name, err)
		}
	}
	selected := namespace.Match(labels.SelectorFromSet(labels.Set{"tier": "x"}), fields.Everything())
	page, err := f.views.Everything().List(t.Context(), &metainternalversion.ListOptions{Limit: 1}, selected)
	if err != nil || len(page.Items) != 1 || page.Continue == "" || page.RemainingItemCount != nil {
		t.Errorf("got %v, %v", page, err)
	}
}

// TestListsPages checks which lists of a user with the right to all are served by a view.
func TestListsPages(t *testing.T) {
	t.Parallel()
	token, err := storage.EncodeContinue("/view/2/b", "/", 5)
	if err != nil {
		t.Fatal(err)
	}
	all, some := everything(), namespace.Match(labels.SelectorFromSet(labels.Set{"a": "b"}), fields.Everything())
	for name, tc := range map[string]struct {
		options   metainternalversion.ListOptions
		predicate storage.SelectionPredicate
		want      bool
	}{
		"all":                       {metainternalversion.ListOptions{}, all, false},
		"a page":                    {metainternalversion.ListOptions{Limit: 5}, all, true},
		"a page at a revision":      {metainternalversion.ListOptions{Limit: 5, ResourceVersion: "7", ResourceVersionMatch: metav1.ResourceVersionMatchExact}, all, true},
		"a page of any revision":    {metainternalversion.ListOptions{Limit: 5, ResourceVersion: "0"}, all, false},
		"a page of selected ones":   {metainternalversion.ListOptions{Limit: 5}, some, false},
		"the rest of a view's list": {metainternalversion.ListOptions{Continue: token}, some, true},
	} {
		if got := visibility.ListsPages(&tc.options, tc.predicate); got != tc.want {
			t.Errorf("%s: %v, want %v", name, got, tc.want)
		}
	}
}

// TestStored checks which lists from before the history are left to the store, and that
// their tokens are those of the library.
func TestStored(t *testing.T) {
	f := newFixture(t)
	begin := f.put(t, newNamespace("a"), newNamespace("b"), newRole("get", []string{"get"}), newRole("every", []string{"list"}),
		bind("", "e", "every", "u"), bind("a", "x", "get", "v"), bind("b", "x", "get", "v"))
	f.run(t)
	firstPage := func(view *visibility.View) string {
		_, page := list(t, view, metainternalversion.ListOptions{Limit: 1})
		return page.Continue
	}
	library, err := storage.EncodeContinue("/a\x00", "/", begin)
	if err != nil {
		t.Fatal(err)
	}
	all, some := firstPage(f.of("u")), firstPage(f.of("v"))
	revoked := f.put(t, bind("", "e", "every", "w"))
	list(t, f.of("w"), atRevision(revoked))
	for name, tc := range map[string]struct {
		view *visibility.View
		from string // token
		want string // where the store continues
	}{
		"a list of everything":                            {f.views.Everything(), "", "/"},
		"pages of everything":                             {f.views.Everything(), firstPage(f.views.Everything()), "/b"},
		"pages of a part, continued by everything":        {f.views.Everything(), some, "/b"},
		"a list of a user who sees all":                   {f.of("w"), "", ""},
		"pages of all, of a user who sees all":            {f.of("w"), all, "/b"},
		"pages of the library, of a user who sees all":    {f.of("w"), library, "/a\x00"},
		"pages of a part, of a user who sees all":         {f.of("w"), some, ""},
		"pages of all, of a user who does not any more":   {f.of("u"), all, ""},
		"pages of a part":                                 {f.of("v"), some, ""},
		"pages of the library, of a user who sees a part": {f.of("v"), library, ""},
		"not a token": {f.views.Everything(), "x", ""},
	} {
		stored := tc.view.Stored(&metainternalversion.ListOptions{Limit: 1, Continue: tc.from})
		got, revision := "", begin
		if stored != nil {
			if got = "/"; stored.Continue != "" {
				if got, revision, err = storage.DecodeContinue(stored.Continue, "/"); err != nil {
					t.Errorf("%s: %v", name, err)
				}
			}
			if stored.Limit != 1 {
				t.Errorf("%s: the limit is %d", name, stored.Limit)
			}
		}
		if got != tc.want || tc.from == library && revision != begin {
			t.Errorf("%s: the store lists from %q at %d, want %q at %d", name, got, revision, tc.want, begin)
		}
	}
}
