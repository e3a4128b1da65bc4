// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/borough-io/borough/test/harness"
)

// unit is the unit of a figure.
type unit int

const (
	seconds    unit = iota // lower is better
	perSecond              // higher is better
	bytesUnit              // lower is better
	counted                // lower is better
	factor                 // of one figure to another; lower is better
	share                  // of a whole; lower is better
	proportion             // of one figure to another; higher is better
)

// figure is one measurement.
type figure struct {
	row   string
	unit  unit
	value float64
}

// aim is the ratio to Kubernetes that Borough aims for in a row, and in each of its
// rounds, or the value that its figure aims to stay below or to reach.
type aim struct{ times, each, below, reach float64 }

const shareRow = "LimitRanger's share of creating a Pod"

var aims = func() map[string]aim {
	all := map[string]aim{
		"Start to ready, new":                {times: 8},
		"Memory, idle":                       {times: 3},
		"Create Pods, 32 clients":            {times: 2, each: 1.5},
		shareRow:                             {below: 0.03},
		"Delete an empty Namespace, p50":     {times: 250},
		"Delete a Namespace with 2,000 Pods": {times: 40},
		manyPodsRow(full.many):               {reach: 20_000},
		"Delete 300 Namespaces at once":      {times: 60},
		fewDecisionRow:                       {below: 5e-6},
		decisionRow:                          {below: 5e-6},
		bindingMemoryRow:                     {below: 500},
		visibleListRow(100000) + ", p50":     {below: 0.005},
		visibleWatchRow + ", p99":            {below: 0.05},
		visibleCreatesRow:                    {reach: 0.8},
		quotaRow:                             {times: 2},
		quotaShareRow:                        {reach: 0.8},
		quotasRow:                            {reach: 0.8},
		quotaPurgeRow:                        {reach: 0.9},
		userShareRow:                         {reach: 0.95},
		otherGrantRow + ", p99":              {below: 0.05},
		deployedCreateRow:                    {times: 1},
		deployedDeleteRow:                    {below: 1},
	}
	for _, suffix := range []string{"", withTenants} {
		rows := newLargeRows(full.large, suffix)
		all[rows.page+", p50"] = aim{below: 0.005}
		all[rows.whole] = aim{below: 1}
		all[rows.pages] = aim{below: 2}
		all[rows.restart] = aim{below: 2}
		all[rows.live] = aim{below: 4 << 10}
		all[rows.resident] = aim{below: 1.3}
	}
	return all
}()

// limitRangerAims are the aims for the plugin by itself.
var limitRangerAims = func() map[string]aim {
	all := map[string]aim{}
	for _, row := range []string{"1 container, 1 LimitRange", "1 container, 5 LimitRanges", "10 containers, 1 LimitRange", "10 containers, 5 LimitRanges"} {
		for _, row := range []string{row, "Nothing to set, " + row} {
			all[row], all[row+": allocations"] = aim{times: 3}, aim{times: 10}
		}
	}
	return all
}()

// report collects the figures of all rounds, in the order of their rows.
type report struct {
	aims   map[string]aim
	rows   []*row
	byName map[string]*row
}

type row struct {
	name  string
	unit  unit
	sides map[string][]float64
}

func (r *report) add(side string, figures []figure) {
	if r.byName == nil {
		r.byName = map[string]*row{}
	}
	for _, f := range figures {
		if r.byName[f.row] == nil {
			r.byName[f.row] = &row{name: f.row, unit: f.unit, sides: map[string][]float64{}}
			r.rows = append(r.rows, r.byName[f.row])
		}
		sides := r.byName[f.row].sides
		sides[side] = append(sides[side], f.value)
	}
}

// String formats the report as Markdown tables.
func (r *report) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "| | %s | %s | times better | aim |\n|---|---:|---:|---:|---|\n", kube, borough)
	for _, row := range r.rows {
		if row.sides[kube] == nil {
			continue
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s |\n", row.name, row.median(kube), row.median(borough), formatRatio(row.ratio()), r.aims[row.name].judge(row))
	}
	var single strings.Builder
	for _, row := range r.rows {
		for _, side := range []string{borough, alone} {
			if row.sides[kube] == nil && row.sides[side] != nil {
				fmt.Fprintf(&single, "| %s | %s | %s |\n", row.name, row.median(side), r.aims[row.name].judge(row))
			}
		}
	}
	if single.Len() > 0 {
		fmt.Fprintf(&b, "\nBy itself:\n\n| | | aim |\n|---|---:|---|\n%s", single.String())
	}
	return b.String()
}

// judge returns the aim and whether it was met.
func (a aim) judge(r *row) string {
	var text string
	var met bool
	switch {
	case a.times > 0:
		text, met = fmt.Sprintf("%g", a.times), r.ratio() >= a.times
	case a.below > 0:
		text, met = "below "+r.format(a.below), middle(r.sides[borough]) < a.below
	case a.reach > 0:
		text, met = r.format(a.reach), middle(r.sides[borough]) >= a.reach
	default:
		return ""
	}
	text += ": " + verdict(met)
	if a.each > 0 {
		lowest := math.Inf(1)
		for i := range min(len(r.sides[kube]), len(r.sides[borough])) {
			lowest = min(lowest, r.ratioOf(r.sides[kube][i], r.sides[borough][i]))
		}
		text += fmt.Sprintf("; %g in each round: %s, %.2g", a.each, verdict(lowest >= a.each), lowest)
	}
	return text
}

func verdict(met bool) string {
	if met {
		return "met"
	}
	return "missed"
}

func (r *row) ratio() float64 { return r.ratioOf(middle(r.sides[kube]), middle(r.sides[borough])) }

func (r *row) ratioOf(theirs, ours float64) float64 {
	if r.unit == perSecond || r.unit == proportion {
		theirs, ours = ours, theirs
	}
	return theirs / ours
}

func (r *row) median(side string) string { return r.format(middle(r.sides[side])) }

func (r *row) format(value float64) string {
	switch {
	case r.unit == perSecond:
		return number(int(value+0.5)) + " /s"
	case r.unit == bytesUnit && value < 1<<20:
		return fmt.Sprintf("%.3g KiB", value/(1<<10))
	case r.unit == bytesUnit:
		return number(int(value/(1<<20)+0.5)) + " MiB"
	case r.unit == counted:
		return number(int(value + 0.5))
	case r.unit == proportion || r.unit == factor:
		return fmt.Sprintf("%.2f", value)
	case r.unit == share:
		return fmt.Sprintf("%.2g%%", 100*value)
	case value < 1e-4:
		return fmt.Sprintf("%.3g µs", value*1e6)
	case value < 1:
		return fmt.Sprintf("%.3g ms", value*1000)
	}
	return fmt.Sprintf("%.4g s", value)
}

func formatRatio(ratio float64) string {
	switch {
	case math.IsInf(ratio, 1):
		return "∞"
	case ratio >= 10:
		return fmt.Sprintf("%.0f", ratio)
	}
	return fmt.Sprintf("%.2g", ratio)
}

// middle returns the median.
func middle(values []float64) float64 {
	if len(values) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(values))
	half := len(sorted) / 2
	if len(sorted)%2 == 1 {
		return sorted[half]
	}
	return (sorted[half-1] + sorted[half]) / 2
}

// The table is written between these lines of the document. The text around it
// is maintained by hand.
const (
	beginMarker = "<!-- make bench writes from here -->\n"
	endMarker   = "<!-- to here -->\n"
)

func writeBetweenMarkers(path, text string) error {
	document, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("write the table: %w", err)
	}
	before, rest, begins := strings.Cut(string(document), beginMarker)
	_, after, ends := strings.Cut(rest, endMarker)
	if !begins || !ends {
		return fmt.Errorf("write the table: %s does not have the lines %q and %q", path, beginMarker, endMarker)
	}
	document = []byte(before + beginMarker + text + endMarker + after)
	if err := os.WriteFile(path, document, 0o644); err != nil {
		return fmt.Errorf("write the table: %w", err)
	}
	if name, err := filepath.Rel(harness.Root, path); err == nil {
		fmt.Fprintln(os.Stderr, "written to", name)
	}
	return nil
}
