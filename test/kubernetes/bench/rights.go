// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"

	"github.com/borough-io/borough/test/harness"
	"github.com/borough-io/borough/test/kubernetes/testcluster"
)

const (
	userShareRow  = "Create Pods as a user, in proportion to an administrator"
	otherGrantRow = "From a grant to the first allowed request, another server"
)

// reviewAccess measures SubjectAccessReviews of a right in one of the Namespaces.
func reviewAccess(ctx context.Context, s *side, size size) ([]figure, error) {
	if err := s.loadPolicy(ctx, size); err != nil {
		return nil, err
	}
	const path = "/apis/" + authorizationv1.GroupName + "/v1/subjectaccessreviews"
	body := fmt.Appendf(nil, `{"apiVersion":"authorization.k8s.io/v1","kind":"SubjectAccessReview","spec":{"user":%q,"groups":["a","b",%q,"system:authenticated"],`+
		`"resourceAttributes":{"namespace":%q,"verb":"create","group":%q,"resource":"pods"}}}`, policyUser(tenant), policyTeam(tenant), policyNamespace(tenant), s.group())
	c, err := s.client(0)
	if err != nil {
		return nil, err
	}
	response, err := c.send(ctx, http.MethodPost, path, jsonType, body)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	var review authorizationv1.SubjectAccessReview
	if err := json.NewDecoder(response.Body).Decode(&review); err != nil {
		return nil, fmt.Errorf("read a SubjectAccessReview: %w", err)
	}
	if !review.Status.Allowed {
		return nil, fmt.Errorf("the policy does not allow what it should: %+v", review.Status)
	}
	o, err := s.load(ctx, manyClients, size.gets, func(ctx context.Context, c *client, _ int) error {
		return c.create(ctx, path, body)
	})
	if err != nil {
		return nil, err
	}
	return o.figures("SubjectAccessReviews, " + clientsLabel(manyClients)), nil
}

// createAsUser creates Pods in the same Namespace as an administrator and as a user with a
// RoleBinding, in many short turns, because the speed of the machine varies.
func createAsUser(ctx context.Context, s *side, size size) ([]figure, error) {
	if err := s.loadPolicy(ctx, size); err != nil {
		return nil, err
	}
	user, err := s.as(ctx, policyUser(tenant), policyTeam(tenant))
	if err != nil {
		return nil, err
	}
	const turns = 20
	var rates, proportions []float64
	var cpu [2]float64
	for turn := range turns {
		var took [2]time.Duration
		for i := range took {
			who := (i + turn) % len(took)
			prefix := s.newName("as")
			before, err := s.usage()
			if err != nil {
				return nil, err
			}
			o, err := []*side{s, user}[who].load(ctx, manyClients, size.create/4, func(ctx context.Context, c *client, i int) error {
				return c.create(ctx, s.namespaced(policyNamespace(tenant), "pods"), s.podBody(fmt.Sprintf("%s-%d", prefix, i)))
			})
			if err != nil {
				return nil, err
			}
			after, err := s.usage()
			if err != nil {
				return nil, err
			}
			took[who] = o.elapsed
			cpu[who] += after.cpu - before.cpu
		}
		rates = append(rates, float64(size.create/4)/took[1].Seconds())
		proportions = append(proportions, took[0].Seconds()/took[1].Seconds())
	}
	return []figure{
		{row: "Create Pods as a user, " + clientsLabel(manyClients), unit: perSecond, value: middle(rates)},
		{row: userShareRow, unit: proportion, value: middle(proportions)},
		{row: userShareRow + ": by the CPU time of the server", unit: proportion, value: cpu[0] / cpu[1]},
	}, nil
}

// grantHere measures how long after a grant the same server allows a request.
func grantHere(ctx context.Context, s *side, size size) ([]figure, error) {
	took, err := s.grant(ctx, s, size)
	if err != nil {
		return nil, err
	}
	return quantiles("From a grant to the first allowed request, same server", took), nil
}

// grantElsewhere measures how long after a grant another server, on the same etcd,
// allows a request.
func (b *bench) grantElsewhere(ctx context.Context, _ int) (err error) {
	servers, stop, err := startTwoBoroughs(ctx)
	defer func() { err = errors.Join(err, stop()) }()
	if err != nil {
		return err
	}
	took, err := servers[0].grant(ctx, servers[1], b.size)
	if err != nil {
		return err
	}
	b.report.add(borough, quantiles(otherGrantRow, took))
	return nil
}

// grant grants a right in one Namespace after the other, and sends requests that need
// it to a server until one is allowed. It returns the times from the answer to the
// grant to that of this request.
func (s *side) grant(ctx context.Context, on *side, size size) ([]time.Duration, error) {
	if err := s.loadPolicy(ctx, size); err != nil {
		return nil, err
	}
	const name = "newcomer"
	user, err := on.as(ctx, name)
	if err != nil {
		return nil, err
	}
	c, err := user.client(0)
	if err != nil {
		return nil, err
	}
	allowed := func(namespace int) (bool, error) {
		return c.allowed(ctx, s.namespaced(policyNamespace(namespace), "limitranges/absent"))
	}
	o := make([]time.Duration, size.grants)
	_, err = s.load(ctx, 1, size.grants, func(ctx context.Context, admin *client, i int) error {
		if before, err := allowed(i); before || err != nil {
			return fmt.Errorf("a request before the grant was allowed: %t: %w", before, err)
		}
		if err := admin.create(ctx, roleBindingsPath(i), roleBindingBody(name, policyRole(0), name, name)); err != nil {
			return err
		}
		answered := time.Now()
		for {
			now, err := allowed(i)
			if err != nil {
				return err
			}
			if now {
				o[i] = time.Since(answered)
				return admin.delete(ctx, roleBindingsPath(i)+"/"+name)
			}
		}
	})
	return o, err
}

// allowed reads an object that does not exist, and returns whether the user may.
func (c *client) allowed(ctx context.Context, path string) (bool, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, c.host+path, nil)
	if err != nil {
		return false, err
	}
	response, err := c.http.Do(request)
	if err != nil {
		return false, err
	}
	defer response.Body.Close()
	if _, err := io.Copy(io.Discard, response.Body); err != nil {
		return false, fmt.Errorf("GET %s: read the response: %w", path, err)
	}
	switch response.StatusCode {
	case http.StatusForbidden:
		return false, nil
	case http.StatusNotFound:
		return true, nil
	}
	return false, fmt.Errorf("GET %s: %s", path, response.Status)
}

// startTwoBoroughs starts two servers on one etcd, which accept the same users.
func startTwoBoroughs(ctx context.Context) (servers [2]*side, stop func() error, err error) {
	dir, err := os.MkdirTemp("", "borough-bench-")
	if err != nil {
		return servers, func() error { return nil }, fmt.Errorf("make a directory for two servers: %w", err)
	}
	var etcd *testcluster.Etcd
	var boroughs [2]harness.Borough
	stop = func() error {
		err := errors.Join(boroughs[0].Stop(), boroughs[1].Stop())
		if etcd != nil {
			etcd.Kill()
		}
		return errors.Join(err, os.RemoveAll(dir))
	}
	if etcd, err = testcluster.StartEtcd(ctx, filepath.Join(dir, "etcd"), testcluster.EtcdOptions{}); err != nil {
		return servers, stop, fmt.Errorf("start etcd: %w", err)
	}
	for i := range boroughs {
		boroughs[i].Dir = filepath.Join(dir, fmt.Sprintf("server-%d", i))
		if i > 0 {
			if err := os.CopyFS(filepath.Join(boroughs[i].Dir, "pki"), os.DirFS(filepath.Join(boroughs[0].Dir, "pki"))); err != nil {
				return servers, stop, fmt.Errorf("share the certificates: %w", err)
			}
		}
		if err := boroughs[i].StartServer(ctx, etcd.ClientFlags()...); err != nil {
			return servers, stop, fmt.Errorf("start server %d: %w", i, err)
		}
		if servers[i], err = newBoroughSide(&boroughs[i]); err != nil {
			return servers, stop, err
		}
	}
	return servers, stop, nil
}
