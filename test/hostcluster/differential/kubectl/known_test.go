// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package kubectl

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/borough-io/borough/test/e2e/harness"
)

// difference is something that is meant to be otherwise, and why is in
// docs/reference/differences.md.
type difference struct {
	// said is a piece of what that says.
	said string
	// steps are those that may differ by this.
	steps *regexp.Regexp
	// fold makes the outputs alike.
	fold func(kube, borough *output)
	// sometimes says that chance has a part in it.
	sometimes bool
	// met counts the steps whose outputs it changed.
	met atomic.Int64
}

func (d *difference) apply(step string, kube, borough *output) {
	if *kube == *borough || !d.steps.MatchString(step) {
		return
	}
	before := [2]output{*kube, *borough}
	d.fold(kube, borough)
	if before != [2]output{*kube, *borough} {
		d.met.Add(1)
	}
}

// known are all of them.
var known = []*difference{
	// Of the servers.
	{
		said:  "a column of `kubectl get namespaces`, behind the three of Kubernetes",
		steps: regexp.MustCompile(`kubectl get (ns|namespaces) `),
		fold:  foldOwnColumns,
	},
	{
		said:  `<a id="errors-of-clients"></a>`,
		steps: regexp.MustCompile(`--server-side|kubectl patch`),
		fold:  foldClientErrors,
	},
	{
		said:  `<a id="diffs-in-messages"></a>`,
		steps: regexp.MustCompile(`kubectl (apply|diff|edit|replace)`),
		fold:  foldDiffs,
	},
	{
		said:      `<a id="random-order"></a>`,
		steps:     regexp.MustCompile(`greedy\.yaml`),
		fold:      foldOrder,
		sometimes: true,
	},
	{
		said:  "`invalid JSON patch`",
		steps: regexp.MustCompile(`kubectl patch`),
		fold: func(kube, borough *output) {
			kube.Stderr = strings.Replace(kube.Stderr, "error decoding patch: unexpected end of JSON input", "invalid JSON patch", 1)
		},
	},
	{
		said:  `<a id="newer-fields"></a>`,
		steps: regexp.MustCompile(`kubectl explain pod.*Probe --recursive`),
		fold: func(_, borough *output) {
			newer := regexp.MustCompile(`(?m)^ +(mode|protocol)\t<string>\n +enum: .*\n`)
			borough.Stdout = newer.ReplaceAllString(borough.Stdout, "")
		},
	},
	{
		said:  "`kubectl explain` describes Namespaces, LimitRanges and Pods in our words",
		steps: regexp.MustCompile(`kubectl explain (ns|namespaces|limits|limitranges|pods$)`),
		fold:  foldDescriptions,
	},

	// Of kubectl, which knows the kinds of core by heart.
	{
		said:  "`kubectl describe` has a form of its own",
		steps: regexp.MustCompile(`kubectl describe`),
		fold:  foldDescribed,
	},
	{
		said:  "`kubectl edit` sends merge patches",
		steps: regexp.MustCompile(`kubectl edit .*--output-patch`),
		fold: func(kube, borough *output) {
			for _, o := range []*output{kube, borough} {
				o.Stdout = regexp.MustCompile(`(?m)^Patch: .*$`).ReplaceAllString(o.Stdout, "Patch")
			}
		},
	},
	{
		said:  "`kubectl apply --dry-run=client`",
		steps: regexp.MustCompile(`kubectl apply .*--dry-run=client`),
		fold: func(kube, borough *output) {
			if strings.Contains(borough.Stderr, "applying patch locally: expected a struct") {
				*borough = *kube
			}
		},
	},
	{
		said:  "`kubectl get all`",
		steps: regexp.MustCompile(`kubectl get all`),
		fold:  func(kube, _ *output) { kube.Stdout = strings.ReplaceAll(kube.Stdout, "\npod/", "\n") },
	},
}

// TestDocumented finds each difference in the document for users.
func TestDocumented(t *testing.T) {
	data, err := os.ReadFile(filepath.Join(harness.Root, "docs", "reference", "differences.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, difference := range known {
		if !strings.Contains(string(data), difference.said) {
			t.Errorf("the document does not say: %s", difference.said)
		}
	}
}

// foldOwnColumns leaves out the columns that only Borough has.
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

// foldClientErrors takes what is the client's fault for what Kubernetes says is
// the server's.
func foldClientErrors(kube, borough *output) {
	const internal, bad = "Error from server: ", "Error from server (BadRequest): "
	if message, ok := strings.CutPrefix(kube.Stderr, internal); ok && borough.Stderr == bad+message {
		kube.Stderr = borough.Stderr
	}
}

// foldOrder sorts violations. Kubernetes goes through maps in their random order.
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

// foldDiffs leaves out what an update would have changed, which Kubernetes shows
// in its internal form.
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

// foldDescriptions keeps the names and the types of the fields.
func foldDescriptions(kube, borough *output) {
	for _, o := range []*output{kube, borough} {
		o.Stdout = description.ReplaceAllString(o.Stdout, "")
	}
	borough.Stdout = ownFields.ReplaceAllString(borough.Stdout, "")
}

var describedName = regexp.MustCompile(`(?m)^Name: .*\n`)

// foldDescribed keeps which objects are described.
func foldDescribed(kube, borough *output) {
	for _, o := range []*output{kube, borough} {
		o.Stdout = strings.Join(describedName.FindAllString(o.Stdout, -1), "")
	}
}
