// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	visibleWatchRow   = "From a grant to ADDED, with 1,000 watches of Namespaces of users"
	visibleCreatesRow = "Create Namespaces with 1,000 watches of Namespaces of users, in proportion to none"
)

// visibleNamespaces is how many Namespaces a user may get.
const visibleNamespaces = 20

// visibleListRow is the row of a list among a number of Namespaces.
func visibleListRow(namespaces int) string {
	return fmt.Sprintf("List the %d of %s Namespaces that a user may get", visibleNamespaces, number(namespaces))
}

const viewerRole = "namespace-viewer"

// loadViewers creates, once, a ClusterRole to get a Namespace.
func (s *side) loadViewers(ctx context.Context, size size) error {
	if err := s.loadPolicy(ctx, size); err != nil || s.hasViewers {
		return err
	}
	admin, err := s.client(0)
	if err != nil {
		return err
	}
	role := fmt.Appendf(nil, `{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"ClusterRole","metadata":{"name":%q},`+
		`"rules":[{"apiGroups":[%q],"resources":["namespaces"],"verbs":["get"]}]}`, viewerRole, s.group())
	if err := admin.create(ctx, rbacPrefix+"/clusterroles", role); err != nil {
		return err
	}
	s.hasViewers = true
	return nil
}

// view lets a user get one of the Namespaces of the policy.
func (s *side) view(ctx context.Context, c *client, namespace int, user string) error {
	return c.create(ctx, roleBindingsPath(namespace), roleBindingBody(user, viewerRole, user, user))
}

// listVisible measures how a user finds the Namespaces that she may get: with one list
// or, where that needs the right to all of them, with a review for each Namespace. For
// that she has to know their names.
func listVisible(ctx context.Context, s *side, size size) ([]figure, error) {
	if err := s.loadViewers(ctx, size); err != nil {
		return nil, err
	}
	user := s.newName("viewer")
	_, err := s.load(ctx, 1, visibleNamespaces, func(ctx context.Context, c *client, i int) error {
		return s.view(ctx, c, i*size.bindings/visibleNamespaces, user)
	})
	if err != nil {
		return nil, err
	}
	row := visibleListRow(size.bindings)
	if s.name == kube {
		took, err := s.reviewAll(ctx, size, user)
		return []figure{{row: row + ", p50", unit: seconds, value: took.Seconds()}}, err
	}
	few, err := s.listAs(ctx, size, user, row)
	if err != nil {
		return nil, err
	}
	prefix := s.newName("other")
	_, err = s.load(ctx, manyClients, size.visible-size.bindings, func(ctx context.Context, c *client, i int) error {
		return c.create(ctx, s.prefix+"/namespaces", s.namespaceBody(fmt.Sprintf("%s-%d", prefix, i)))
	})
	if err != nil {
		return nil, err
	}
	many, err := s.listAs(ctx, size, user, visibleListRow(size.visible))
	return append(few, many...), err
}

// reviewAll returns the time of a SelfSubjectAccessReview for each Namespace.
func (s *side) reviewAll(ctx context.Context, size size, user string) (time.Duration, error) {
	const path = "/apis/" + authorizationv1.GroupName + "/v1/selfsubjectaccessreviews"
	o, err := s.load(ctx, manyClients, size.bindings, func(ctx context.Context, c *client, i int) error {
		body := fmt.Appendf(nil, `{"apiVersion":"authorization.k8s.io/v1","kind":"SelfSubjectAccessReview","spec":{`+
			`"resourceAttributes":{"namespace":%[1]q,"name":%[1]q,"verb":"get","group":%[2]q,"resource":"namespaces"}}}`, policyNamespace(i), s.group())
		return c.as(user).create(ctx, path, body)
	})
	return o.elapsed, err
}

// listAs measures lists of Namespaces by a user.
func (s *side) listAs(ctx context.Context, size size, user, row string) ([]figure, error) {
	o, err := s.load(ctx, 1, size.lists*10, func(ctx context.Context, c *client, _ int) error {
		response, err := c.as(user).send(ctx, http.MethodGet, s.prefix+"/namespaces", jsonType, nil)
		if err != nil {
			return err
		}
		defer response.Body.Close()
		var list metav1.PartialObjectMetadataList
		if err := json.NewDecoder(response.Body).Decode(&list); err != nil {
			return fmt.Errorf("read a list of Namespaces: %w", err)
		}
		if n := len(list.Items); n != visibleNamespaces {
			return fmt.Errorf("the user sees %d Namespaces instead of %d", n, visibleNamespaces)
		}
		return nil
	})
	return quantiles(row, o.each), err
}

// watchVisible measures 1,000 watches of Namespaces, each of a user who may get one:
// how long after a grant the watch has the Namespace, and how much the creation of
// Namespaces slows down.
func watchVisible(ctx context.Context, s *side, size size) ([]figure, error) {
	if err := s.loadViewers(ctx, size); err != nil {
		return nil, err
	}
	user := s.newName("watcher")
	nth := func(i int) string { return fmt.Sprintf("%s-%d", user, i) }
	_, err := s.load(ctx, manyClients, size.viewers, func(ctx context.Context, c *client, i int) error {
		return s.view(ctx, c, i, nth(i))
	})
	if err != nil {
		return nil, err
	}
	var took []time.Duration
	var elapsed [2]time.Duration // without and with the watches
	const turns = 4
	for turn := range turns {
		open := turn % 2
		watched := func(i int) (user, path string) { return nth(i), s.prefix + "/namespaces" }
		err := s.withWatches(ctx, size.viewers*open, watched, func(seen func(user int) <-chan time.Time) error {
			prefix := s.newName("seen")
			o, err := s.load(ctx, manyClients, size.create*2, func(ctx context.Context, c *client, i int) error {
				return c.create(ctx, s.prefix+"/namespaces", s.namespaceBody(fmt.Sprintf("%s-%d", prefix, i)))
			})
			elapsed[open] += o.elapsed
			if open == 0 || err != nil {
				return err
			}
			_, err = s.load(ctx, 1, size.grants, func(ctx context.Context, c *client, i int) error {
				who := i % size.viewers
				sent := time.Now()
				if err := s.view(ctx, c, (i+turn*size.grants+size.viewers)%size.bindings, nth(who)); err != nil {
					return err
				}
				select {
				case at := <-seen(who):
					took = append(took, at.Sub(sent))
				case <-ctx.Done():
				}
				return context.Cause(ctx)
			})
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	return append(quantiles(visibleWatchRow, took), figure{row: visibleCreatesRow, unit: proportion, value: elapsed[0].Seconds() / elapsed[1].Seconds()}), nil
}

// withWatches calls the function while a number of users watch a path each. It gives the
// function the times of ADDED events.
func (s *side) withWatches(ctx context.Context, users int, watched func(i int) (user, path string), do func(seen func(user int) <-chan time.Time) error) error {
	watching, stop := context.WithCancel(ctx)
	added := make([]chan time.Time, users)
	var waits []func() error
	var err error
	for i := range users {
		added[i] = make(chan time.Time, 10)
		var c *client
		if c, err = s.client(watchers + i%watchers); err != nil {
			break
		}
		user, path := watched(i)
		var wait func() error
		wait, err = c.as(user).watch(watching, path, func(event, _ string) bool {
			if event == "ADDED" {
				added[i] <- time.Now()
			}
			return true
		})
		if err != nil {
			break
		}
		waits = append(waits, wait)
	}
	if err == nil {
		err = do(func(user int) <-chan time.Time { return added[user] })
	}
	stop()
	var ending sync.WaitGroup
	for _, wait := range waits {
		ending.Go(func() { _ = wait() }) // it ends with the context
	}
	ending.Wait()
	return errors.Join(err, context.Cause(ctx))
}
