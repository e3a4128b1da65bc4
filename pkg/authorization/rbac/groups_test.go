// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package rbac

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
)

// countingUser counts how often its groups are read.
type countingUser struct {
	user.DefaultInfo
	reads int
}

func (u *countingUser) GetGroups() []string {
	u.reads++
	return u.Groups
}

// TestManyGroups decides about a user with as many groups as a SubjectAccessReview may
// have, and checks that the cost grows no faster than their number.
func TestManyGroups(t *testing.T) {
	const n = 10_000
	var groups, bound []string
	for i := range n {
		groups = append(groups, fmt.Sprintf("g%d", i))
		bound = append(bound, fmt.Sprintf("Group:h%d", i))
	}
	groups[n-1], bound[n-1] = "team", "Group:team"
	objects := []any{newRole("a", "read", "get core pods"), bind("a", "many", "Role", "read", bound...)}
	for _, group := range groups[:n/10] {
		objects = append(objects, bind("a", group, "Role", "absent", "Group:"+group, "User:alice"))
	}
	z := NewAuthorizer(newIndex(t, objects...))
	for name, groups := range map[string][]string{
		"different": groups,
		"the same":  append(slices.Repeat([]string{"g0"}, n-1), "team"),
	} {
		t.Run(name, func(t *testing.T) {
			u := &countingUser{DefaultInfo: user.DefaultInfo{Name: "alice", Groups: groups}}
			a := authorizer.AttributesRecord{User: u, Verb: "get", Resource: "pods", Namespace: "a", ResourceRequest: true}
			allocations := testing.AllocsPerRun(1, func() {
				u.reads = 0
				const want = `RBAC: allowed by RoleBinding "many/a" of Role "read" to Group "team"`
				if decision, reason, err := z.Authorize(t.Context(), a); decision != authorizer.DecisionAllow || reason != want || err != nil {
					t.Errorf("got %v, %s, %v", decision, reason, err)
				}
			})
			// The slice and the set of groups grow by doubling, or nearly.
			if allocations > 200 {
				t.Errorf("%.0f allocations", allocations)
			}
			if u.reads > 10 {
				t.Errorf("the groups were read %d times", u.reads)
			}
		})
	}
}

// TestDecisionEnds checks that a decision ends with its request.
func TestDecisionEnds(t *testing.T) {
	z := NewAuthorizer(newIndex(t, newRole("a", "r", "get core pods"), bind("a", "b", "Role", "r", "User:alice")))
	ctx, cancel := context.WithCancelCause(t.Context())
	gone := errors.New("the client has gone")
	cancel(gone)
	a := ask("alice get core pods a p")
	if decision, _, err := z.Authorize(ctx, a); decision != authorizer.DecisionNoOpinion || !errors.Is(err, gone) {
		t.Errorf("Authorize: got %v, %v", decision, err)
	}
	if _, _, _, err := z.RulesFor(ctx, a.User, "a"); !errors.Is(err, gone) {
		t.Errorf("RulesFor: got %v", err)
	}
	if allowed, err := z.index.Allows(ctx, a); allowed || !errors.Is(err, gone) {
		t.Errorf("Allows: got %v, %v", allowed, err)
	}
}
