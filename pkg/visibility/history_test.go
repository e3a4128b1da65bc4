// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package visibility_test

import (
	"fmt"
	"testing"
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
	}
	revoked := f.write(t, nil, objects(bind("b", "x", "r", "u"), bind("a", "many", "r")))
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
