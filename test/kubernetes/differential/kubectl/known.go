// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package kubectl

import (
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
)

// difference is an intentional difference. docs/reference/differences.md
// explains it.
type difference struct {
	// text is a part of the explanation.
	text string
	// steps matches the steps that may differ by this.
	steps *regexp.Regexp
	// fold makes the outputs equal.
	fold func(kube, borough *output)
	// random means that it does not occur in every run.
	random bool
	// folded counts the steps whose outputs fold has changed.
	folded atomic.Int64
}

func (d *difference) apply(step string, kube, borough *output) {
	if *kube == *borough || !d.steps.MatchString(step) {
		return
	}
	before := [2]output{*kube, *borough}
	d.fold(kube, borough)
	if before != [2]output{*kube, *borough} {
		d.folded.Add(1)
	}
}

// knownDifferences are the intentional differences of all groups.
var knownDifferences = []*difference{
	{
		text:  "an additional column of `kubectl get namespaces.tenancy.borough.io`",
		steps: regexp.MustCompile(`kubectl get "?(ns|namespaces)`),
		fold:  foldOwnColumns,
	},
	{
		text:  `<a id="errors-of-clients"></a>`,
		steps: regexp.MustCompile(`--server-side|kubectl patch`),
		fold:  foldClientErrors,
	},
	{
		text:  `<a id="diffs-in-messages"></a>`,
		steps: regexp.MustCompile(`kubectl (apply|diff|edit|replace)`),
		fold:  foldDiffs,
	},
	{
		text:  `<a id="keys-in-messages"></a>`,
		steps: regexp.MustCompile(`kubectl replace`),
		fold: func(_, borough *output) {
			borough.Stderr = strings.Replace(borough.Stderr, "/registry/tenancy.borough.io/", "/registry/", 1)
		},
	},
	{
		text:   `<a id="random-order"></a>`,
		steps:  regexp.MustCompile(`greedy\.yaml`),
		fold:   foldOrder,
		random: true,
	},
	{
		text:  "`kubectl get pod NAME --subresource=resize`",
		steps: regexp.MustCompile(`kubectl get pod web --subresource=(resize|ephemeralcontainers)$`),
		fold: func(_, borough *output) {
			borough.Stdout = regexp.MustCompile(`(?m)^(\S+) .* (\S+)$`).ReplaceAllString(borough.Stdout, "$1   $2")
		},
	},
	{
		text:  "`kubectl version`",
		steps: regexp.MustCompile(`kubectl version`),
		fold: func(_, borough *output) {
			borough.Stdout = regexp.MustCompile(`\+borough-.*`).ReplaceAllString(borough.Stdout, "")
		},
	},
	{
		text:  "`kubectl get all`",
		steps: regexp.MustCompile(`kubectl get all`),
		fold:  func(kube, _ *output) { kube.Stdout = strings.ReplaceAll(kube.Stdout, "\npod/", "\n") },
	},
}

// ownGroupDifferences are those of Borough's own group. kubectl has special code for
// core's kinds.
var ownGroupDifferences = []*difference{
	{
		text:  "`kubectl explain` shows Borough's descriptions of Namespaces, LimitRanges, ResourceQuotas and Pods",
		steps: regexp.MustCompile(`kubectl explain (namespaces|pods )`),
		fold:  foldDescriptions,
	},
	{
		text:  "`kubectl describe` has a special format",
		steps: regexp.MustCompile(`kubectl describe`),
		fold:  foldDescribed,
	},
	{
		text:  "`kubectl edit` sends merge patches",
		steps: regexp.MustCompile(`kubectl edit .*--output-patch`),
		fold: func(kube, borough *output) {
			for _, o := range []*output{kube, borough} {
				o.Stdout = regexp.MustCompile(`(?m)^Patch: .*$`).ReplaceAllString(o.Stdout, "Patch")
			}
		},
	},
	{
		text:  "`kubectl apply --dry-run=client`",
		steps: regexp.MustCompile(`kubectl apply .*--dry-run=client`),
		fold: func(kube, borough *output) {
			if strings.Contains(borough.Stderr, "applying patch locally: expected a struct") {
				*borough = *kube
			}
		},
	},
}

// foldOwnColumns removes the columns that only Borough has.
func foldOwnColumns(_, borough *output) {
	const gap = "   "
	lines := strings.Split(borough.Stdout, "\n")
	headings := strings.Split(lines[0], gap)
	for i, line := range lines {
		cells := strings.Split(line, gap)
		if len(cells) != len(headings) {
			continue
		}
		var kept []string
		for j, cell := range cells {
			if !slices.Contains([]string{"WAITING FOR", "PROTECTED", "LAST PROGRESS", "DETAILS"}, headings[j]) {
				kept = append(kept, cell)
			}
		}
		lines[i] = strings.Join(kept, gap)
	}
	borough.Stdout = strings.Join(lines, "\n")
}

// foldClientErrors accepts a 4xx of Borough for a 500 of Kubernetes.
func foldClientErrors(kube, borough *output) {
	const internal, bad = "Error from server: ", "Error from server (BadRequest): "
	if message, ok := strings.CutPrefix(kube.Stderr, internal); ok && borough.Stderr == bad+message {
		kube.Stderr = borough.Stderr
	}
}

// foldOrder sorts causes. Kubernetes iterates over maps in random order.
func foldOrder(kube, borough *output) {
	for _, o := range []*output{kube, borough} {
		head, violations, found := strings.Cut(o.Stderr, ": [")
		if !found {
			continue
		}
		parts := strings.Split(strings.TrimSuffix(violations, "]\n"), ", ")
		slices.Sort(parts)
		o.Stderr = head + ": [" + strings.Join(parts, ", ") + "]\n"
	}
}

var shownDiff = regexp.MustCompile(`(?s)@@ -.*?\n\n`)

// foldDiffs removes the diff of a rejected update, which Kubernetes shows in
// its internal form.
func foldDiffs(kube, borough *output) {
	for _, o := range []*output{kube, borough} {
		o.Stdout = shownDiff.ReplaceAllString(o.Stdout, "@@\n\n")
		o.Stderr = shownDiff.ReplaceAllString(o.Stderr, "@@\n\n")
	}
}

var (
	description = regexp.MustCompile(`(?m)^    .*\n`)
	ownFields   = regexp.MustCompile(`(?m)^  (deletionProtection|termination)\t.*\n\n?`)
)

// foldDescriptions keeps only the names and types of the fields.
func foldDescriptions(kube, borough *output) {
	for _, o := range []*output{kube, borough} {
		o.Stdout = description.ReplaceAllString(o.Stdout, "")
	}
	borough.Stdout = ownFields.ReplaceAllString(borough.Stdout, "")
}

var describedName = regexp.MustCompile(`(?m)^Name: .*\n`)

// foldDescribed keeps only which objects are described.
func foldDescribed(kube, borough *output) {
	for _, o := range []*output{kube, borough} {
		o.Stdout = strings.Join(describedName.FindAllString(o.Stdout, -1), "")
	}
}
