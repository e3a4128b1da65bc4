// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// tree writes files to a temporary directory.
func tree(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, content := range files {
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func reach(t *testing.T, files map[string]string) (map[string]entry, map[string]bool) {
	t.Helper()
	declarations, gates, err := newGraph(tree(t, files)).reach([]name{{"pkg/api/pod", "start"}})
	if err != nil {
		t.Fatal(err)
	}
	return declarations, gates
}

const start = `package pod

import (
	"k8s.io/kubernetes/pkg/features"
	"k8s.io/kubernetes/pkg/other"
)

func start(unrelated int) {
	dropOne()
	other.Limit.check(unrelated)
}

func dropOne() { enabled(features.One) }
func enabled(any) {}
func unrelated() {}
`

const other = `package other

import "k8s.io/kubernetes/pkg/features"

var Limit limit
type limit int
func (limit) check(int) { _ = features.Two }
func untouched() {}
`

func TestReach(t *testing.T) {
	declarations, gates := reach(t, map[string]string{
		"pkg/api/pod/pod.go": start, "pkg/other/other.go": other, "pkg/other/other_test.go": "package other; func (limit) tested() {}",
	})
	want := []string{"pkg/api/pod.dropOne", "pkg/api/pod.enabled", "pkg/api/pod.start", "pkg/other.Limit", "pkg/other.limit", "pkg/other.limit.check"}
	if diff := cmp.Diff(want, slices.Sorted(maps.Keys(declarations))); diff != "" {
		t.Errorf("reached (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[string]bool{"One": true, "Two": false}, gates); diff != "" {
		t.Errorf("gates (-want +got):\n%s", diff)
	}
}

func TestHash(t *testing.T) {
	hash := func(source string) string {
		declarations, _ := reach(t, map[string]string{"pkg/api/pod/pod.go": "package pod\n" + source})
		return declarations["pkg/api/pod.start"].hash
	}
	plain := hash("func start() { println(1); println(2) }")
	for source, same := range map[string]bool{
		"// Comment.\nfunc start() {\n\tprintln(1) // one\n\n\tprintln(2)\n}": true,
		"func start() { println(1); println(3) }":                             false,
		"func start() { println(2); println(1) }":                             false,
	} {
		if (hash(source) == plain) != same {
			t.Errorf("the same hash: got %v, want %v:\n%s", !same, same, source)
		}
	}
}

func TestGateStates(t *testing.T) {
	const gates = `package features
var gates = map[featuregate.Feature]featuregate.VersionedSpecs{
	Grown: {
		{Version: version.MustParse("1.20"), Default: false, PreRelease: featuregate.Alpha},
		{Version: version.MustParse("1.36"), Default: true, PreRelease: featuregate.Beta},
		{Version: version.MustParse("1.37"), Default: true, PreRelease: featuregate.GA, LockToDefault: true},
	},
	generic.Young: {{Version: version.MustParse("1.36"), Default: false, PreRelease: featuregate.Alpha}},
	Later: {{Version: version.MustParse("1.37"), Default: true, PreRelease: featuregate.Beta}},
}`
	dir := tree(t, map[string]string{"pkg/features/gates.go": gates})
	got, err := gateStates(release{version: "v1.36.3", kubernetes: dir, apiserver: dir})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]string{"Grown": "on beta", "Young": "off alpha"}, got); diff != "" {
		t.Errorf("states (-want +got):\n%s", diff)
	}
}

func TestCompareFields(t *testing.T) {
	api := func(spec string) string {
		return tree(t, map[string]string{"core/v1/types.go": "package v1\ntype Pod struct {\n\tSpec *PodSpec `json:\"spec,omitempty\"`\n}\n" +
			"type PodSpec struct {" + spec + "}\ntype Volume struct { Name string `json:\"name\"` }\ntype Service struct { A int `json:\"a\"` }"})
	}
	got, err := compareFields(api("Old, Same int `json:\"old\"`; Changed int `json:\"changed\"`"), api("Volumes []Volume `json:\"volumes\"`; Changed *int `json:\"changed\"`"), "Pod")
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{"Pod.spec": inBoth, "PodSpec.old": inRelease, "PodSpec.volumes": inLibrary, "Volume.name": inLibrary, "PodSpec.changed": changed}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("fields (-want +got):\n%s", diff)
	}
}

func TestCompare(t *testing.T) {
	file := filepath.Join(t.TempDir(), "lock")
	ported := &record{
		version:      "v1.36.3",
		declarations: map[string]entry{"p.same": {"1", "a.go"}, "p.changed": {"2", "b.go"}, "p.gone": {"3", noFile}},
		gates:        map[string]string{"G": "off alpha"},
		fields:       map[string]string{"PodSpec.new": inLibrary, "PodSpec.gone": inBoth},
	}
	if err := ported.write(file); err != nil {
		t.Fatal(err)
	}
	read, err := readLock(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(ported, read, cmp.AllowUnexported(record{}, entry{})); diff != "" {
		t.Errorf("read back (-want +got):\n%s", diff)
	}

	now := &record{
		declarations: map[string]entry{"p.same": {"1", ""}, "p.changed": {"9", ""}, "p.new": {"4", ""}},
		gates:        map[string]string{"G": "on beta"},
		fields:       map[string]string{"PodSpec.new": inBoth, "PodSpec.dropped": inLibrary},
	}
	want := []string{
		"field PodSpec.dropped: in the library but not in the release: drop it in pkg/corepod/features",
		"field PodSpec.gone: gone, was in both",
		"field PodSpec.new: in both, was in library",
		"gate G: on beta, was off alpha",
		"changed p.changed: b.go",
		"gone p.gone: -",
		"new p.new",
	}
	if diff := cmp.Diff(want, compare(read, now)); diff != "" {
		t.Errorf("compared (-want +got):\n%s", diff)
	}

	now.keepFiles(read)
	if got := now.declarations["p.changed"].file; got != "b.go" {
		t.Errorf("the file of a changed declaration: got %q", got)
	}
	if got := now.declarations["p.new"].file; got != unmapped {
		t.Errorf("the file of a new declaration: got %q", got)
	}
}

func TestCheckGates(t *testing.T) {
	now := &record{gates: map[string]string{"Old": "on ga", "Fine": "off alpha", "Missing": "off beta", "Later": unknown}, dropping: []string{"Fine", "Missing"}}
	want := []string{
		"gate Old: on ga, but pkg/corepod/features drops its fields",
		"gate Missing: off beta, but pkg/corepod/features does not drop its fields",
	}
	if diff := cmp.Diff(want, checkGates([]string{"Old", "Fine", "Later"}, now)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
