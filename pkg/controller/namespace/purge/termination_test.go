// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package purge

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"

	v1 "github.com/borough-io/borough/pkg/apis/tenancy/v1"
)

func TestTermination(t *testing.T) {
	at := func(second int) *metav1.Time {
		return new(metav1.NewTime(testTime.Add(time.Duration(second) * time.Second)))
	}
	deletedAt := func(second int) func(*partial) { return func(o *partial) { o.DeletionTimestamp = at(second) } }
	own := func(resource string, count int64, objects ...v1.RemainingObject) v1.RemainingResource {
		return v1.RemainingResource{Group: v1.GroupName, Resource: resource, Count: &count, Objects: objects}
	}
	failed := func(r v1.RemainingResource, text string) v1.RemainingResource {
		r.LastError = text
		return r
	}
	grace := new(int64(30))
	const down = "the server is currently unable to handle the request"

	for _, tc := range []struct {
		name   string
		server func(*server)
		want   *v1.NamespaceTermination
	}{
		{"finalizers", func(s *server) {
			s.add(pods, object("a", finalizers("example.com/f", "example.com/g")))
			s.add(limitRanges, object("l"))
		}, &v1.NamespaceTermination{Remaining: []v1.RemainingResource{
			own("pods", 1, v1.RemainingObject{Name: "a", Finalizers: []string{"example.com/f", "example.com/g"}, DeletionTimestamp: at(0)}),
			own("limitranges", 1, v1.RemainingObject{Name: "l"}),
		}}},
		{"a grace period", func(s *server) {
			s.add(pods, object("a", waits, deletedAt(30)))
		}, &v1.NamespaceTermination{Remaining: []v1.RemainingResource{
			own("pods", 1, v1.RemainingObject{Name: "a", DeletionTimestamp: at(30), DeletionGracePeriodSeconds: grace}),
		}}},
		{"five objects at most, the oldest deletion first", func(s *server) {
			s.before = func(verb, _, what string) error {
				if verb == "create" || what == "h" {
					return forbidden(pods)
				}
				return nil
			}
			s.add(pods, object("h"))
			for i, name := range []string{"g", "f", "e", "d", "c", "b", "a"} {
				s.add(pods, object(name, waits, deletedAt(i/2), finalizers(strings.Split(strings.Repeat("f ", 7), " ")[:7]...)))
			}
		}, &v1.NamespaceTermination{Remaining: []v1.RemainingResource{
			failed(own("pods", 8,
				v1.RemainingObject{Name: "f", DeletionTimestamp: at(0), DeletionGracePeriodSeconds: grace, Finalizers: []string{"f", "f", "f", "f", "f"}},
				v1.RemainingObject{Name: "g", DeletionTimestamp: at(0), DeletionGracePeriodSeconds: grace, Finalizers: []string{"f", "f", "f", "f", "f"}},
				v1.RemainingObject{Name: "d", DeletionTimestamp: at(1), DeletionGracePeriodSeconds: grace, Finalizers: []string{"f", "f", "f", "f", "f"}},
				v1.RemainingObject{Name: "e", DeletionTimestamp: at(1), DeletionGracePeriodSeconds: grace, Finalizers: []string{"f", "f", "f", "f", "f"}},
				v1.RemainingObject{Name: "b", DeletionTimestamp: at(2), DeletionGracePeriodSeconds: grace, Finalizers: []string{"f", "f", "f", "f", "f"}},
			), `delete pods.tenancy.borough.io "h": pods.tenancy.borough.io is forbidden: no`),
		}}},
		{"what cannot be listed has no count and comes first", func(s *server) {
			s.add(pods, object("a", waits))
			s.before = func(verb, resource, _ string) error {
				if verb == "list" && resource == "limitranges" {
					return unavailable()
				}
				return nil
			}
		}, &v1.NamespaceTermination{Remaining: []v1.RemainingResource{
			{Group: v1.GroupName, Resource: "limitranges", LastError: "list limitranges.tenancy.borough.io: " + down},
			own("pods", 1, v1.RemainingObject{Name: "a", DeletionTimestamp: at(0), DeletionGracePeriodSeconds: grace}),
		}}},
		{"groups that cannot be discovered", func(s *server) {
			s.discovered.Failure = &discovery.ErrGroupDiscoveryFailed{Groups: map[schema.GroupVersion]error{
				{Group: "b.example.com", Version: "v1"}: errors.New("no"),
				{Group: "a.example.com", Version: "v1"}: errors.New("neither"),
			}}
			s.discovered.ParseFailure = errors.New("parse group version a/b/c")
		}, &v1.NamespaceTermination{Undiscovered: []v1.UndiscoveredGroup{
			{LastError: "parse group version a/b/c"},
			{GroupVersion: "a.example.com/v1", LastError: "neither"},
			{GroupVersion: "b.example.com/v1", LastError: "no"},
		}}},
		{"no discovery at all", func(s *server) { s.discovered.Failure = errors.New("no") },
			&v1.NamespaceTermination{Undiscovered: []v1.UndiscoveredGroup{{LastError: "no"}}}},
		{"a refused finalize", func(s *server) {
			s.addForeign()
			s.before = func(_, resource, _ string) error {
				if resource == "namespaces/finalize" {
					return forbidden(v1.SchemeGroupVersion.WithResource("namespaces"))
				}
				return nil
			}
		}, &v1.NamespaceTermination{LastError: `finalize namespace "ns": namespaces.tenancy.borough.io is forbidden: no`}},
		{"nothing to say", func(s *server) { s.add(pods, object("a")) }, nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := newServer(t)
			ns := s.terminating()
			tc.server(s)
			_ = s.deleter().Delete(t.Context(), ns, time.Time{}, &Progress{}) // what it says is in the status
			var got *v1.NamespaceTermination
			if stored := s.get("ns"); stored != nil {
				got = stored.Status.Termination
			}
			if tc.want != nil {
				tc.want.LastProgressTime = *at(0)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("termination (-want +got):\n%s", diff)
			}
		})
	}
}

// TestTerminationIsBounded makes everything as large as it gets.
func TestTerminationIsBounded(t *testing.T) {
	long := errors.New(strings.Repeat("é", 100_000))
	f := &findings{finalizeErr: long, Discovered: Discovered{ParseFailure: long}}
	groups := map[schema.GroupVersion]error{}
	for i := range 50 {
		name := fmt.Sprintf("%d-%s", i, strings.Repeat("x", 245))
		groups[schema.GroupVersion{Group: name, Version: "v1"}] = long
		k := &resourceState{Resource: Resource{GroupVersionResource: schema.GroupVersionResource{Group: name, Resource: name}}, err: long, read: true}
		k.items = map[types.UID]item{}
		for j := range 100 {
			it := item{name: name, deletion: new(metav1.NewTime(testTime)), grace: new(int64(30))}
			for range 50 {
				it.finalizers = append(it.finalizers, fmt.Sprintf("%d-%s", j, strings.Repeat("f", 310)))
			}
			k.items[types.UID(fmt.Sprint(j))] = it
		}
		f.resources = append(f.resources, k)
	}
	f.Failure = &discovery.ErrGroupDiscoveryFailed{Groups: groups}
	ns := &v1.Namespace{}
	setConditions(&ns.Status, f.conditions(), metav1.Now())
	for _, c := range ns.Status.Conditions {
		if len(c.Message) > maxMessage || !utf8.ValidString(c.Message) {
			t.Errorf("the message of %s has %d bytes", c.Type, len(c.Message))
		}
	}
	ns.Status.Conditions = nil
	setTermination(&ns.Status, f.termination(), testTime)
	if size := ns.Size(); size > 128<<10 {
		t.Errorf("the termination has %d bytes", size)
	}
	if got := ns.Status.Termination.OmittedResources; got != 40 {
		t.Errorf("%d resources are left out, want 40", got)
	}
}
