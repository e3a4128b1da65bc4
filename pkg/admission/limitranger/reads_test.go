// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package limitranger

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/borough-io/borough/pkg/apis/tenancy/v1"
)

// TestForget checks that what was read is dropped when the watch has reached it, also after the
// last LimitRange of a Namespace is deleted: it can be large.
func TestForget(t *testing.T) {
	for name, tc := range map[string]struct {
		event func(x *index, limitRange *v1.LimitRange)
		kept  map[string]bool // by the revision of the event
	}{
		"an add":      {func(x *index, l *v1.LimitRange) { x.OnAdd(l, false) }, map[string]bool{"4": true, "5": false, "6": false}},
		"an update":   {func(x *index, l *v1.LimitRange) { x.OnUpdate(l, l) }, map[string]bool{"4": true, "5": false, "6": false}},
		"a deletion":  {func(x *index, l *v1.LimitRange) { x.OnDelete(l) }, map[string]bool{"4": true, "5": false, "6": false}},
		"of another":  {func(x *index, l *v1.LimitRange) { l.Namespace = "b"; x.OnDelete(l) }, map[string]bool{"6": true}},
		"of no known": {func(x *index, l *v1.LimitRange) { l.ResourceVersion = "x"; x.OnDelete(l) }, map[string]bool{"": true}},
	} {
		t.Run(name, func(t *testing.T) {
			for revision, kept := range tc.kept {
				s := newSource()
				s.reads.last.Add("a", &read{found: none, revision: 5})
				tc.event(s.index, &v1.LimitRange{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "l", ResourceVersion: revision}})
				if _, readAt := s.reads.latest("a"); (readAt == 5) != kept {
					t.Errorf("after an event at %q, the read is at %d", revision, readAt)
				}
			}
		})
	}
}
