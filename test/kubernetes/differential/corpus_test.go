// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package differential

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/borough-io/borough/test/harness"
)

// object is decoded JSON.
type object = map[string]any

// corpusCase is a test case of Kubernetes' validation tests. They specify the
// errors of each; here kube-apiserver determines them.
type corpusCase struct {
	Name, Op string
	Pod, Old object
	Bare     bool
}

// readCorpus reads the test cases of Pod validation.
func readCorpus(t *testing.T) (all []corpusCase) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(harness.Root, "pkg/corepod/validation/testdata/*.yaml"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no test cases of validation: %v", err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var cases []corpusCase
		if err := yaml.Unmarshal(data, &cases); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		for _, c := range cases {
			c.Name = strings.TrimSuffix(filepath.Base(file), ".yaml") + ": " + c.Name
			c.Pod, c.Old = complete(c.Pod, c.Bare), complete(c.Old, c.Bare)
			all = append(all, c)
		}
	}
	return all
}

// complete adds the same fields to Pods as those tests do.
func complete(pod object, bare bool) object {
	if pod == nil {
		pod = object{}
	}
	metadata, _ := pod["metadata"].(object)
	delete(metadata, "namespace") // the scenario has its own
	if bare {
		return pod
	}
	if metadata["name"] == nil {
		if metadata == nil {
			metadata = object{}
			pod["metadata"] = metadata
		}
		metadata["name"] = "p"
	}
	spec, _ := pod["spec"].(object)
	if spec == nil {
		spec = object{}
		pod["spec"] = spec
	}
	if containers, _ := spec["containers"].([]any); len(containers) == 0 {
		spec["containers"] = []any{object{"name": "c", "image": "i"}}
	}
	return pod
}

// scenario converts the test case to requests.
func (c corpusCase) scenario() scenario {
	s := scenario{Name: c.Name}
	switch c.Op {
	case "", "create":
		s.Steps = []step{{Do: "POST pods", Body: c.Pod}}
	case "update":
		s.Steps = []step{{Do: "POST pods", Body: c.Old}, {Do: "PUT pods/p", Body: c.Pod}}
	case "status":
		s.Steps = []step{{Do: "POST pods", Body: c.Old}, {Do: "PUT pods/p/status", Body: c.Old}, {Do: "PUT pods/p/status", Body: c.Pod}}
	case "resize":
		s.Steps = []step{{Do: "POST pods", Body: c.Old}, {Do: "PUT pods/p/resize", Body: c.Pod}}
	case "ephemeral":
		s.Steps = []step{{Do: "POST pods", Body: c.Old}, {Do: "PUT pods/p/ephemeralcontainers", Body: c.Pod}}
	}
	s.Steps = append(s.Steps, step{Do: "GET pods/p"})
	return s
}

// TestCorpus sends requests for the test cases of validation.
func TestCorpus(t *testing.T) {
	var scenarios []scenario
	for _, c := range readCorpus(t) {
		scenarios = append(scenarios, c.scenario())
	}
	checkGroups(t, handwritten, scenarios)
}

// TestFixed runs the handwritten scenarios, and those that once showed a
// difference.
func TestFixed(t *testing.T) { checkGroups(t, handwritten, readScenarios(t, "testdata/*.yaml")) }
