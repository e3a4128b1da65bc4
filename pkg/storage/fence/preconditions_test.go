// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package fence_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"go.etcd.io/etcd/client/v3/kubernetes"

	"github.com/borough-io/borough/pkg/apis/tenancy"
	"github.com/borough-io/borough/pkg/storage/precondition"
)

// limitRangesOf returns the LimitRanges stored in a Namespace.
func (f *fixture) limitRangesOf(namespace string) precondition.Objects {
	f.t.Helper()
	objects := precondition.Objects{Resource: tenancy.Resource("limitranges"), Namespace: namespace}
	prefix := limitRangesPrefix + namespace + "/"
	stored, err := f.client.Kubernetes.List(f.t.Context(), prefix, kubernetes.ListOptions{})
	if err != nil {
		f.t.Fatal(err)
	}
	for _, kv := range stored.Kvs {
		objects.Versions = append(objects.Versions, precondition.Version{
			Name: strings.TrimPrefix(string(kv.Key), prefix), Revision: kv.ModRevision,
		})
	}
	return objects
}

// put writes a Pod in an attempt that requires the objects.
func (f *fixture) put(name string, revision int64, required ...precondition.Objects) (kubernetes.PutResponse, *precondition.Attempt, error) {
	ctx, attempt := precondition.NewAttempt(f.t.Context(), f.fence, 0)
	for _, objects := range required {
		attempt.Require(objects)
	}
	response, err := f.pods.OptimisticPut(ctx, podsPrefix+"town/"+name, []byte("new"), revision, kubernetes.PutOptions{GetOnFailure: true})
	return response, attempt, err
}

func TestPreconditions(t *testing.T) {
	const town = limitRangesPrefix + "town/"
	for name, test := range map[string]struct {
		before []string // LimitRanges
		change func(f *fixture)
		stale  bool
	}{
		"none":              {},
		"one":               {before: []string{"a"}},
		"several":           {before: []string{"a", "a-b", "a.b", "ab", "b"}},
		"too many":          {before: names(200)},
		"created the first": {change: func(f *fixture) { f.write(town+"a", "x") }, stale: true},
		"created before":    {before: []string{"b"}, change: func(f *fixture) { f.write(town+"a", "x") }, stale: true},
		"created between":   {before: []string{"a", "b"}, change: func(f *fixture) { f.write(town+"a-b", "x") }, stale: true},
		"created behind":    {before: []string{"a"}, change: func(f *fixture) { f.write(town+"b", "x") }, stale: true},
		"created, too many": {before: names(200), change: func(f *fixture) { f.write(town+"b", "x") }, stale: true},
		"changed":           {before: []string{"a", "b"}, change: func(f *fixture) { f.write(town+"a", "x") }, stale: true},
		"changed, too many": {before: names(200), change: func(f *fixture) { f.write(town+"n100", "x") }, stale: true},
		"deleted":           {before: []string{"a", "b"}, change: func(f *fixture) { f.remove(town + "b") }, stale: true},
		"deleted, too many": {before: names(200), change: func(f *fixture) { f.remove(town + "n100") }, stale: true},
		"replaced":          {before: []string{"a"}, change: func(f *fixture) { f.remove(town + "a"); f.write(town+"a", "x") }, stale: true},
		"content of others": {before: []string{"a"}, change: func(f *fixture) {
			for _, namespace := range []string{"townhall", "town0", "tow", "a"} {
				f.write(limitRangesPrefix+namespace+"/a", "x")
			}
			f.write(podsPrefix+"town/other", "x")
		}},
		"namespace changed": {before: []string{"a"}, change: func(f *fixture) { f.write(namespacesPrefix+"town", active(f.t)) }},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			f.write(namespacesPrefix+"town", active(t))
			for _, name := range test.before {
				f.write(town+name, "content")
			}
			existing := f.write(podsPrefix+"town/existing", "old")
			objects := f.limitRangesOf("town")
			if _, _, err := f.put("earlier", 0, objects); err != nil {
				t.Fatalf("the Namespace is not known yet: %v", err)
			}
			if test.change != nil {
				test.change(f)
			}
			staleAt, err := f.fence.Check(t.Context(), objects)
			if err != nil || (staleAt != 0) != test.stale {
				t.Errorf("check: got %d, %v; want stale: %t", staleAt, err, test.stale)
			}
			for key, revision := range map[string]int64{"created": 0, "existing": existing} {
				response, attempt, err := f.put(key, revision, objects)
				if test.stale {
					if !errors.Is(err, precondition.ErrStale) || attempt.StaleAt() < staleAt {
						t.Errorf("%s: got %v, %v, stale at %d; want it to be stale", key, response, err, attempt.StaleAt())
					}
				} else if err != nil || !response.Succeeded || attempt.StaleAt() != 0 {
					t.Errorf("%s: got %v, %v, stale at %d; want success", key, response, err, attempt.StaleAt())
				}
			}
			if created := f.exists(podsPrefix + "town/created"); created == test.stale {
				t.Errorf("the Pod was created: %t", created)
			}
		})
	}
}

func names(n int) (names []string) {
	for i := range n {
		names = append(names, fmt.Sprintf("n%03d", i))
	}
	return names
}

// TestPreconditionsOfAPartialView omits from the read objects one that is older than
// the others, as a cache does that has not synced yet.
func TestPreconditionsOfAPartialView(t *testing.T) {
	f := newFixture(t)
	f.write(namespacesPrefix+"town", active(t))
	for _, name := range []string{"c", "b", "a"} {
		f.write(limitRangesPrefix+"town/"+name, "content")
	}
	objects := f.limitRangesOf("town")
	objects.Versions = objects.Versions[:2] // without c, the oldest
	if _, _, err := f.put("p", 0, objects); !errors.Is(err, precondition.ErrStale) {
		t.Errorf("got %v", err)
	}
}

// TestPreconditionsHoldExactly compares random sets of objects with random others.
func TestPreconditionsHoldExactly(t *testing.T) {
	f := newFixture(t)
	f.write(namespacesPrefix+"town", active(t))
	all := []string{"a", "a-b", "a.b", "ab", "b", "b0"}
	held, stale := 0, 0
	past := []precondition.Objects{f.limitRangesOf("town")}
	for i := range 500 {
		if key := limitRangesPrefix + "town/" + all[rand.IntN(len(all))]; f.exists(key) && rand.IntN(2) == 0 {
			f.remove(key)
		} else {
			f.write(key, "content")
		}
		now := f.limitRangesOf("town")
		past = append(past, now)
		for _, objects := range []precondition.Objects{now, past[rand.IntN(len(past))]} {
			want := slices.Equal(objects.Versions, now.Versions)
			_, _, err := f.put(fmt.Sprintf("p%d-%t", i, want), 0, objects)
			if holds := !errors.Is(err, precondition.ErrStale); holds != want {
				t.Fatalf("%v where %v are stored: got %v", objects.Versions, now.Versions, err)
			}
			if want {
				held++
			} else {
				stale++
			}
		}
	}
	if held == 0 || stale == 0 {
		t.Errorf("%d held, %d were stale", held, stale)
	}
}

func TestPreconditionsAndConflicts(t *testing.T) {
	f := newFixture(t)
	f.write(namespacesPrefix+"town", active(t))
	none := f.limitRangesOf("town")
	revision := f.write(podsPrefix+"town/p", "old")
	f.write(podsPrefix+"town/p", "changed")
	f.write(limitRangesPrefix+"town/a", "content")
	for _, expected := range []int64{0, revision} {
		response, attempt, err := f.put("p", expected, none)
		if err != nil || response.Succeeded || string(response.KV.GetValue()) != "changed" || attempt.StaleAt() != 0 {
			t.Errorf("expecting revision %d: got %v, %v; want the ordinary conflict", expected, response, err)
		}
	}
	if response, _, err := f.put("gone", revision, none); err != nil || response.Succeeded || response.KV != nil {
		t.Errorf("of an object that is gone: got %v, %v; want the ordinary conflict", response, err)
	}
}

func TestPreconditionsOfUnknownResources(t *testing.T) {
	f := newFixture(t)
	for _, objects := range []precondition.Objects{
		{Resource: tenancy.Resource("namespaces"), Namespace: "town"},
		{Resource: tenancy.Resource("limitranges")},
	} {
		if _, _, err := f.put("p", 0, objects); err == nil || errors.Is(err, precondition.ErrStale) {
			t.Errorf("%v: got %v", objects, err)
		}
		if _, err := f.fence.Check(t.Context(), objects); err == nil {
			t.Errorf("%v: the check succeeded", objects)
		}
	}
}
