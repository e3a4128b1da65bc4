// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package purge

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"

	v1 "github.com/borough-io/borough/pkg/apis/tenancy/v1"
)

// describe writes conditions as lines, without times.
func describe(ns *v1.Namespace) []string {
	var lines []string
	if ns != nil {
		for _, c := range ns.Status.Conditions {
			lines = append(lines, fmt.Sprintf("%s=%s %s: %s", c.Type, c.Status, c.Reason, c.Message))
		}
	}
	return lines
}

const (
	discoveryFine = "NamespaceDeletionDiscoveryFailure=False ResourcesDiscovered: All resources successfully discovered"
	parsingFine   = "NamespaceDeletionGroupVersionParsingFailure=False ParsedGroupVersions: All legacy kube types successfully parsed"
	deletionFine  = "NamespaceDeletionContentFailure=False ContentDeleted: All content successfully deleted, may be waiting on finalization"
	contentGone   = "NamespaceContentRemaining=False ContentRemoved: All content successfully removed"
	noFinalizers  = "NamespaceFinalizersRemaining=False ContentHasNoFinalizers: All content-preserving finalizers finished"
)

// remaining is the status of a Namespace that an earlier pass could not empty.
func remaining(ns *v1.Namespace) {
	ns.Status.Termination = &v1.NamespaceTermination{Remaining: []v1.RemainingResource{{Group: v1.GroupName, Resource: "pods"}}}
}

// deletionCase is a Namespace that is deleted.
type deletionCase struct {
	name      string
	namespace func(*v1.Namespace)
	server    func(*server)

	requests   []string // in order; nil to leave out
	err        string   // a part of it; empty for success
	waits      []string // the kinds of a ContentRemainingError
	stays      bool     // the Namespace is still there
	conditions []string // of the Namespace, if it stays
	left       map[schema.GroupVersionResource][]string
	counted    int
}

// testDeletions deletes the Namespace of each case once.
func testDeletions(t *testing.T, cases []deletionCase) {
	t.Helper()
	for _, tc := range cases {
		t.Run(tc.name, tc.test)
	}
}

func (tc deletionCase) test(t *testing.T) {
	s := newServer(t)
	ns := s.terminating(func(ns *v1.Namespace) {
		if tc.namespace != nil {
			tc.namespace(ns)
		}
	})
	if tc.server != nil {
		tc.server(s)
	}
	err := s.deleter().Delete(t.Context(), ns, time.Time{}, &Progress{})

	if tc.err == "" && err != nil {
		t.Errorf("failed: %v", err)
	}
	if tc.err != "" && (err == nil || !strings.Contains(err.Error(), tc.err)) {
		t.Errorf("got error %v, want %q", err, tc.err)
	}
	var remaining *ContentRemainingError
	var waits []string
	if errors.As(err, &remaining) {
		for _, r := range remaining.Content {
			waits = append(waits, r.GroupVersionResource.Resource)
		}
	}
	if diff := cmp.Diff(tc.waits, waits); diff != "" {
		t.Errorf("kinds that wait (-want +got):\n%s", diff)
	}
	if tc.requests != nil {
		// The first lists are sent side by side.
		got := slices.Clone(s.requests)
		if len(got) > 1 && strings.HasPrefix(got[0], "list ") && strings.HasPrefix(got[1], "list ") {
			slices.Sort(got[:2])
		}
		if diff := cmp.Diff(tc.requests, got, cmpEmpty); diff != "" {
			t.Errorf("requests (-want +got):\n%s", diff)
		}
	}
	stored := s.get("ns")
	if stays := stored != nil; stays != tc.stays {
		t.Errorf("the namespace stays: %v, want %v", stays, tc.stays)
	}
	if tc.conditions != nil {
		if diff := cmp.Diff(tc.conditions, describe(stored)); diff != "" {
			t.Errorf("conditions (-want +got):\n%s", diff)
		}
	}
	if tc.left != nil {
		for _, gvr := range []schema.GroupVersionResource{pods, limitRanges, corePods, things} {
			if diff := cmp.Diff(tc.left[gvr], s.names(gvr)); diff != "" {
				t.Errorf("%s left (-want +got):\n%s", gvr.Resource, diff)
			}
		}
	}
	if tc.stays && stored != nil && stored.Labels["l"] != "v" {
		t.Error("the namespace lost its labels")
	}
	if s.counted != tc.counted {
		t.Errorf("counted %d purged objects, want %d", s.counted, tc.counted)
	}
}

var cmpEmpty = cmp.Transformer("empty", func(s []string) []string {
	if s == nil {
		return []string{}
	}
	return s
})
