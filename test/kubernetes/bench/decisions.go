// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/borough-io/borough/test/harness"
)

const (
	fewDecisionRow   = "A decision, with 10 RoleBindings"
	decisionRow      = "A decision, with 10,000 RoleBindings"
	bindingMemoryRow = "Memory for each of 100,000 RoleBindings"
)

// measureDecisions runs the Go benchmarks of pkg/authorization/rbac, which hack/bench.sh
// builds: what a decision costs without a request, and what a RoleBinding.
func (b *bench) measureDecisions(ctx context.Context, _ int) error {
	for _, measured := range []struct {
		row, benchmark, time, metric string
		unit                         unit
		scale                        float64
	}{
		{fewDecisionRow, "Authorize/namespaces=10$", "500ms", "ns/op", seconds, 1e-9},
		{decisionRow, "Authorize/namespaces=10000$", "500ms", "ns/op", seconds, 1e-9},
		{bindingMemoryRow, "Memory$", "3x", "B/binding", bytesUnit, 1},
	} {
		cmd := exec.CommandContext(ctx, filepath.Join(harness.Root, ".cache", "tools", "rbac.test"),
			"-test.run=^$", "-test.bench="+measured.benchmark, "-test.benchtime="+measured.time)
		out, err := cmd.CombinedOutput()
		if err != nil {
			return fmt.Errorf("run the benchmark %s: %w\n%s", measured.benchmark, err, out)
		}
		value, err := metric(string(out), measured.metric)
		if err != nil {
			return fmt.Errorf("run the benchmark %s: %w\n%s", measured.benchmark, err, out)
		}
		b.report.add(borough, []figure{{row: measured.row, unit: measured.unit, value: value * measured.scale}})
	}
	return nil
}

// metric returns the value of a unit in the output of a Go benchmark.
func metric(output, unit string) (float64, error) {
	for line := range strings.Lines(output) {
		if fields := strings.Fields(line); strings.HasPrefix(line, "Benchmark") {
			for i := 1; i < len(fields); i++ {
				if fields[i] == unit {
					return strconv.ParseFloat(fields[i-1], 64)
				}
			}
		}
	}
	return 0, fmt.Errorf("it reports no %s", unit)
}
