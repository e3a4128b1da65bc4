// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package kubectl

import (
	"embed"
	"fmt"
	"io/fs"
	"os/exec"
	"path"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/borough-io/borough/test/kubernetes/differential/sides"
)

// testdata has the scripts, and the manifests that they use.
//
//go:embed testdata
var testdata embed.FS

// Compare runs each script on both sides, and fails the test if they differ in more
// than the known differences, or if a known difference no longer occurs.
func Compare(t *testing.T, pair *sides.Pair) {
	paths, err := fs.Glob(testdata, "testdata/*.sh")
	if err != nil || len(paths) == 0 {
		t.Fatalf("no scripts: %v", err)
	}
	own, err := fs.Glob(testdata, "testdata/own/*.sh")
	if err != nil || len(own) == 0 {
		t.Fatalf("no scripts of the own group: %v", err)
	}
	paths = append(paths, own...)
	var commands, scripts atomic.Int64
	t.Run("scripts", func(t *testing.T) {
		for _, file := range paths {
			name := strings.TrimSuffix(path.Base(file), ".sh")
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				data, err := testdata.ReadFile(file)
				if err != nil {
					t.Fatal(err)
				}
				if _, err := exec.LookPath("diff"); err != nil && strings.Contains(string(data), "kubectl diff") {
					t.Skip("kubectl diff needs diff, which this machine does not have")
				}
				c := comparison{&pair.Kubernetes, &pair.Borough, knownDifferences}
				if slices.Contains(own, file) {
					c.borough, c.known = &pair.OwnGroup, slices.Concat(knownDifferences, ownGroupDifferences)
				}
				commands.Add(int64(c.run(t, name, parse(string(data)))))
				scripts.Add(1)
			})
		}
	})
	if t.Failed() || int(scripts.Load()) != len(paths) {
		return // not all scripts ran
	}
	t.Logf("%d scripts, %d commands on each side", len(paths), commands.Load())
	for _, difference := range slices.Concat(knownDifferences, ownGroupDifferences) {
		if difference.folded.Load() == 0 && !difference.random {
			t.Errorf("this difference no longer occurs: %s", difference.text)
		}
	}
}

// parse returns the steps of a script: its paragraphs without comments.
func parse(script string) []string {
	var steps []string
	for paragraph := range strings.SplitSeq(script, "\n\n") {
		lines := strings.Split(strings.TrimSpace(paragraph), "\n")
		for len(lines) > 0 && strings.HasPrefix(lines[0], "#") {
			lines = lines[1:]
		}
		if step := strings.Join(lines, "\n"); step != "" {
			steps = append(steps, step)
		}
	}
	return steps
}

// comparison is of two sides, with the differences that are known.
type comparison struct {
	kube, borough *sides.Side
	known         []*difference
}

// run runs the steps, each on both sides concurrently, and fails the test for each
// step whose outputs differ. It returns the number of steps.
func (c comparison) run(t *testing.T, name string, steps []string) int {
	kube, err := newShell(t, c.kube, name)
	if err != nil {
		t.Fatal(err)
	}
	borough, err := newShell(t, c.borough, name)
	if err != nil {
		t.Fatal(err)
	}
	var transcript strings.Builder
	for _, step := range steps {
		var kubeOutput, boroughOutput output
		var running sync.WaitGroup
		running.Go(func() { kubeOutput = kube.run(t.Context(), step) })
		running.Go(func() { boroughOutput = borough.run(t.Context(), step) })
		running.Wait()
		for _, difference := range c.known {
			difference.apply(step, &kubeOutput, &boroughOutput)
		}
		if diff := cmp.Diff(kubeOutput, boroughOutput); diff != "" {
			t.Errorf("(-Kubernetes +Borough)\n$ %s\n%s", step, diff)
		}
		fmt.Fprintf(&transcript, "$ %s\n%s", step, kubeOutput)
	}
	t.Logf("both:\n%s", transcript.String())
	return len(steps)
}
