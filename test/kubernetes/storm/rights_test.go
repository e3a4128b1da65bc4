// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package storm

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"

	"github.com/borough-io/borough/test/poll"
)

const (
	// rightPrefix is the prefix of the names of the objects that grant a right. They
	// are also deleted while their Namespace is active.
	rightPrefix = "right-"
	// checksPerWrite is the number of requests after each acknowledged grant or
	// revocation that the writer checks.
	checksPerWrite = 3
	// pace is the time between requests of a user, which leaves most of the machine to
	// the writers.
	pace = 5 * time.Millisecond
)

// ways are the ways to grant a right and to revoke it. Each changes the Role or the
// RoleBinding of a user; the other one stays as makeRights has created it.
var ways = []struct {
	name          string
	grant, revoke func(client rest.Interface, at target) *rest.Request
	// repeatable is whether the same request can be sent again.
	repeatable bool
}{
	{
		"create and delete a RoleBinding",
		func(client rest.Interface, at target) *rest.Request {
			return post(client, at, roleBindings, roleBinding(at, at.name, at.name))
		},
		func(client rest.Interface, at target) *rest.Request {
			return of(client.Delete(), roleBindings, at.namespace).Name(at.name)
		},
		false,
	},
	{
		"change the subjects of a RoleBinding",
		func(client rest.Interface, at target) *rest.Request {
			return apply(client, at, roleBindings, roleBinding(at, at.name, at.name))
		},
		func(client rest.Interface, at target) *rest.Request {
			return apply(client, at, roleBindings, roleBinding(at, at.name, ""))
		},
		true,
	},
	{
		"change the rules of a Role",
		func(client rest.Interface, at target) *rest.Request {
			return put(client, at, roles, role(at, readContent))
		},
		func(client rest.Interface, at target) *rest.Request {
			return put(client, at, roles, role(at, ""))
		},
		true,
	},
	{
		"create a Role and delete a collection of Roles",
		func(client rest.Interface, at target) *rest.Request {
			return post(client, at, roles, role(at, readContent))
		},
		func(client rest.Interface, at target) *rest.Request {
			return of(client.Delete(), roles, at.namespace).Param("fieldSelector", "metadata.name="+at.name)
		},
		false,
	},
}

// right is the right of a user in the steady Namespace. One writer grants and revokes
// it, through both servers.
type right struct {
	user  string
	way   int
	users [2]rest.Interface // clients of each server

	mu      sync.Mutex
	last    grant
	written int           // grants and revocations that were acknowledged
	checked map[check]int // requests with a known decision
	other   int           // requests with another
}

// grant is the last grant or revocation that was sent.
type grant struct {
	number  int
	granted bool
	// server is the one that has acknowledged it, or -1. Decisions of this server are
	// known until the next is sent.
	server int
}

// check is what was checked of a decision.
type check struct {
	server  int
	granted bool
}

// makeRights grants a right to one user for each way.
func (s *storm) makeRights(t *testing.T) {
	t.Helper()
	for i := range ways {
		right := &right{user: fmt.Sprintf("%suser-%d", rightPrefix, i), way: i, last: grant{server: -1}}
		for server := range s.Servers {
			right.users[server] = newClient(t, &s.Servers[server], right.user)
		}
		at := target{namespace: steady, name: right.user}
		for _, request := range []*rest.Request{
			apply(s.clients[0][0], at, roles, role(at, readContent)),
			apply(s.clients[0][0], at, roleBindings, roleBinding(at, right.user, right.user)),
		} {
			if err := request.Do(t.Context()).Error(); err != nil {
				t.Fatalf("grant a right to %s: %v", right.user, err)
			}
		}
		s.rights = append(s.rights, right)
	}
}

// exercise starts the writer of a right and, for each server, a user of it.
func (s *storm) exercise(ctx context.Context, t *testing.T, running *sync.WaitGroup, over <-chan struct{}, right *right, r *rand.Rand) {
	right.written, right.checked, right.other = 0, map[check]int{}, 0
	running.Go(func() {
		if err := s.grantAndRevoke(ctx, over, right, r); err != nil {
			t.Error(err)
		}
	})
	for server := range s.Servers {
		running.Go(func() {
			for !poll.IsOver(ctx, over) {
				if _, err := s.use(ctx, right, server); err != nil {
					t.Error(err)
					return
				}
				_ = poll.Sleep(ctx, pace) // returns early when the test ends
			}
		})
	}
}

// grantAndRevoke revokes a right and grants it until the round is over. Some writes
// are repeated through the other server, where they change nothing.
func (s *storm) grantAndRevoke(ctx context.Context, over <-chan struct{}, right *right, r *rand.Rand) error {
	for n := r.IntN(4); !poll.IsOver(ctx, over); n++ {
		server := n / 2 % len(s.Servers) // each of them grants and revokes
		at := target{namespace: steady, name: right.user, label: fmt.Sprint(r.Uint32())}
		granting := right.send()
		acknowledged, err := s.writeRight(ctx, right, server, at, granting)
		if err == nil && acknowledged && ways[right.way].repeatable && r.IntN(2) > 0 {
			server = 1 - server
			acknowledged, err = s.writeRight(ctx, right, server, at, granting)
		}
		if err != nil {
			return err
		}
		for checks := 0; acknowledged && checks < checksPerWrite && !poll.IsOver(ctx, over); {
			known, err := s.use(ctx, right, server)
			if err != nil {
				return err
			}
			if known {
				checks++
			} else {
				_ = poll.Sleep(ctx, backoff) // returns early when the test ends
			}
		}
	}
	return nil
}

// writeRight grants or revokes a right through a server, and returns whether the
// server has acknowledged that.
func (s *storm) writeRight(ctx context.Context, right *right, server int, at target, granting bool) (acknowledged bool, err error) {
	way := ways[right.way]
	request := way.revoke
	if granting {
		request = way.grant
	}
	o, result, err := send(ctx, request(s.clients[server][0], at))
	if ctx.Err() != nil {
		return false, nil // the test has ended
	}
	s.count(way.name, o)
	switch {
	case err != nil && !s.toleratesError(err):
		return false, fmt.Errorf("%s, for %s: %w", way.name, right.user, err)
	case o != created && o != updated || isEmptyList(result):
		// The write before this one was not acknowledged either, or this one failed.
		_ = poll.Sleep(ctx, backoff) // returns early when the test ends
		return false, nil
	}
	right.acknowledge(server)
	return true, nil
}

// use sends a request that needs the right to a server. The decision is known if the
// same server has acknowledged the last grant or revocation before the request began,
// and the next was not sent before it ended. It returns an error if the decision is
// known and was another.
func (s *storm) use(ctx context.Context, right *right, server int) (known bool, err error) {
	before := right.current()
	allowed, err := right.ask(ctx, server)
	switch {
	case ctx.Err() != nil:
		return false, nil // the test has ended
	case err != nil && !s.toleratesError(err):
		return false, fmt.Errorf("use the right of %s: %w", right.user, err)
	case err != nil:
		return false, nil
	}
	right.mu.Lock()
	defer right.mu.Unlock()
	if before.server != server || before != right.last {
		right.other++
		return false, nil
	}
	if allowed != before.granted {
		return true, fmt.Errorf("%s: server %d has acknowledged write %d, after which %s has the right: %t; a later request to it was allowed: %t",
			ways[right.way].name, server, before.number, right.user, before.granted, allowed)
	}
	right.checked[check{server, allowed}]++
	return true, nil
}

// ask returns whether a server allows a request of the user.
func (r *right) ask(ctx context.Context, server int) (allowed bool, err error) {
	o, _, err := send(ctx, of(r.users[server].Get(), limitRanges, steady).Name(absent))
	switch {
	case o == noObject:
		return true, nil
	case apierrors.IsForbidden(err):
		return false, nil
	case err == nil:
		err = fmt.Errorf("the outcome was %q", o)
	}
	return false, err
}

// send records that the next grant or revocation is sent, and returns which.
func (r *right) send() (granting bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	// The first, after makeRights, is a revocation.
	r.last = grant{r.last.number + 1, r.last.number%2 == 1, -1}
	return r.last.granted
}

// acknowledge records that a server has acknowledged what was sent last.
func (r *right) acknowledge(server int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.last.server = server
	r.written++
}

func (r *right) current() grant {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.last
}

// compareDecisions waits until both servers decide alike, and as the last write says
// if it was acknowledged. There must be no concurrent writes.
func (s *storm) compareDecisions(ctx context.Context, t *testing.T) {
	t.Helper()
	for _, right := range s.rights {
		last := right.current()
		if err := poll.Until(ctx, roundTimeout, func(ctx context.Context) error {
			var allowed [2]bool
			for server := range s.Servers {
				var err error
				if allowed[server], err = right.ask(ctx, server); err != nil {
					return err
				}
			}
			if allowed[0] != allowed[1] || last.server >= 0 && allowed[0] != last.granted {
				return fmt.Errorf("the servers allow a request: %v; the right is granted: %t, acknowledged by server %d", allowed, last.granted, last.server)
			}
			return nil
		}); err != nil {
			t.Errorf("%s, for %s: %v", ways[right.way].name, right.user, err)
		}
	}
}

// verifyRights fails the test unless each server has allowed and denied requests by
// each right that it had granted and revoked.
func (s *storm) verifyRights(t *testing.T) {
	t.Helper()
	for _, right := range s.rights {
		for server := range s.Servers {
			for _, granted := range []bool{false, true} {
				if right.checked[check{server, granted}] == 0 {
					t.Errorf("%s: no request to server %d was checked after it acknowledged the right to be granted: %t", ways[right.way].name, server, granted)
				}
			}
		}
	}
}

// describeRights returns the numbers of grants, revocations and requests.
func (s *storm) describeRights() string {
	var written, denied, allowed, other int
	for _, right := range s.rights {
		right.mu.Lock()
		written += right.written
		for c, n := range right.checked {
			if c.granted {
				allowed += n
			} else {
				denied += n
			}
		}
		other += right.other
		right.mu.Unlock()
	}
	return fmt.Sprintf("%d grants and revocations, %d requests allowed after a grant, %d denied after a revocation, %d during or through the other server",
		written, allowed, denied, other)
}

// isEmptyList reports whether a response is a list without objects: there was nothing
// to delete.
func isEmptyList(result rest.Result) bool {
	body, err := result.Raw()
	var list struct{ Items *[]json.RawMessage }
	return err == nil && json.Unmarshal(body, &list) == nil && list.Items != nil && len(*list.Items) == 0
}
