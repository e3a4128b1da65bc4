// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestBenchmarks checks that the text of docs/benchmarks.md is about the run of the tables: it
// compares that run with others, and explains each aim that was missed.
func TestBenchmarks(t *testing.T) {
	text := read(t, "benchmarks.md")
	run := regexp.MustCompile(`(?m)^- Versions: Kubernetes v(\S+) .*; Borough (v\d+\.\d+\.\d+(?:-\d+)?)`).FindStringSubmatch(text)
	if run == nil {
		t.Fatal("the tables name no versions")
	}
	if column := "| Kubernetes, Borough | " + run[1] + ", " + run[2] + " |"; !strings.Contains(text, column) {
		t.Errorf("the comparison with other runs does not begin with %q", column)
	}
	tables, _, _ := strings.Cut(text, "\nLimitRanger by itself") // its rows are explained together
	_, explained, _ := strings.Cut(text, "\n## Aims that were missed\n")
	explained, _, _ = strings.Cut(explained, "\n## ")
	first := func(row string) string { return strings.TrimSpace(strings.Split(row, "|")[1]) }
	var names []string
	for line := range strings.Lines(explained) {
		if strings.HasPrefix(line, "| ") && first(line) != "" {
			names = append(names, first(line))
		}
	}
	for line := range strings.Lines(tables) {
		if !strings.HasPrefix(line, "| ") || !strings.Contains(line, ": missed") {
			continue
		}
		if !slices.ContainsFunc(names, func(name string) bool { return strings.HasPrefix(first(line), name) }) {
			t.Errorf("it is not explained why %q was missed", first(line))
		}
	}
}
