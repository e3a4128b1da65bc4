// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package podsource

import (
	"strings"
	"testing"

	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/testutil"

	"github.com/borough-io/borough/pkg/source"
)

// TestMetricsOfQueries checks that two URLs that differ in their query, which is not shown,
// do not hide the problems of one another.
func TestMetricsOfQueries(t *testing.T) {
	registry := metrics.NewKubeRegistry()
	m := NewMetrics(registry)
	first := source.Identity{Kind: source.HTTP, Location: "https://pods.example.com/pods?group=a", Node: "n"}
	second := source.Identity{Kind: source.HTTP, Location: "https://pods.example.com/pods?group=b", Node: "n"}
	m.set(first, []source.Problem{{Pod: "a"}, {Pod: "b"}, {}})
	m.set(second, []source.Problem{{Pod: "c"}})
	m.set(second, nil)
	want := `
		# HELP borough_source_refused_pods [ALPHA] Pods of a source that cannot be used, that the server has refused, or whose write or delete keeps failing.
		# TYPE borough_source_refused_pods gauge
		borough_source_refused_pods{source="https://pods.example.com/pods?..."} 2
		# HELP borough_source_unreadable_files [ALPHA] Files of a source that cannot be read, or 1 if the whole source cannot.
		# TYPE borough_source_unreadable_files gauge
		borough_source_unreadable_files{source="https://pods.example.com/pods?..."} 1
	`
	names := []string{"borough_source_refused_pods", "borough_source_unreadable_files"}
	if err := testutil.GatherAndCompare(registry, strings.NewReader(want), names...); err != nil {
		t.Error(err)
	}
	m.remove(second)
	if err := testutil.GatherAndCompare(registry, strings.NewReader(want), names...); err != nil {
		t.Errorf("without the other: %v", err)
	}
	m.remove(first)
	if err := testutil.GatherAndCompare(registry, strings.NewReader(""), names...); err != nil {
		t.Errorf("without both: %v", err)
	}
}
