// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package differential

import (
	"fmt"
	"iter"
	"strings"
	"testing"
)

// axis is a parameter of deletions, with its values.
type axis struct {
	name   string
	values []any
}

// absent is the value of a parameter that is not set.
const absent = "(none)"

// combinations returns all combinations of the values.
func combinations(axes []axis) iter.Seq[map[string]any] {
	return func(yield func(map[string]any) bool) {
		at := make([]int, len(axes))
		for {
			chosen := map[string]any{}
			for i, axis := range axes {
				chosen[axis.name] = axis.values[at[i]]
			}
			if !yield(chosen) {
				return
			}
			i := 0
			for ; i < len(axes); i++ {
				if at[i]++; at[i] < len(axes[i].values) {
					break
				}
				at[i] = 0
			}
			if i == len(axes) {
				return
			}
		}
	}
}

// optionAxes are the options of a deletion.
var optionAxes = []axis{
	{"preconditions", []any{
		absent,
		object{"uid": "$uid"},
		object{"resourceVersion": "$resourceVersion"},
		object{"uid": "another"},
		object{"uid": "$uid", "resourceVersion": "1"},
	}},
	{"propagationPolicy", []any{absent, "Orphan", "Background", "Foreground"}},
	{"dryRun", []any{absent, []any{"All"}}},
}

// deletion returns the delete request with the chosen options.
func deletion(path string, chosen map[string]any) step {
	options := object{}
	for _, name := range []string{"preconditions", "propagationPolicy", "dryRun", "gracePeriodSeconds", "orphanDependents"} {
		if value := chosen[name]; value != nil && value != absent {
			options[name] = value
		}
	}
	s := step{Do: "DELETE " + path}
	if len(options) > 0 {
		s.Body = options
	}
	return s
}

// sample returns the scenarios of all combinations, or as many as the flag
// cases says.
func sample(t *testing.T, axes []axis, scenarioOf func(map[string]any) scenario) (scenarios []scenario) {
	for chosen := range combinations(axes) {
		s := scenarioOf(chosen)
		var name []string
		for _, axis := range axes {
			name = append(name, fmt.Sprint(axis.name, "=", chosen[axis.name]))
		}
		s.Name = strings.Join(name, " ")
		scenarios = append(scenarios, s)
	}
	newRand(t).Shuffle(len(scenarios), func(i, j int) { scenarios[i], scenarios[j] = scenarios[j], scenarios[i] })
	return scenarios[:min(*cases, len(scenarios))]
}

// TestNamespaceDelete deletes Namespaces with all kinds of options and
// finalizers. `make differential` runs all combinations.
func TestNamespaceDelete(t *testing.T) {
	axes := append([]axis{
		{"finalizers", []any{absent, []any{"example.com/f"}, []any{"orphan"}, []any{"foregroundDeletion", "example.com/f"}}},
		{"spec.finalizers", []any{absent, []any{}, []any{"kubernetes", "example.com/g"}}},
		{"before", []any{"Active", "Terminating"}},
	}, optionAxes...)
	r := newRand(t)
	checkGroups(t, few, sample(t, axes, func(chosen map[string]any) scenario {
		chosen["gracePeriodSeconds"] = pick(r, []any{absent, absent, 0, 30, -1})
		metadata := object{"name": "$ns"}
		if chosen["finalizers"] != absent {
			metadata["finalizers"] = chosen["finalizers"]
		}
		var s scenario
		add := func(do string, body any) { s.Steps = append(s.Steps, step{Do: do, Body: body}) }
		add("POST namespaces", object{"metadata": metadata})
		finalize := func() {
			if finalizers := chosen["spec.finalizers"]; finalizers != absent {
				add("PUT namespaces/$ns/finalize", object{"metadata": object{"name": "$ns"}, "spec": object{"finalizers": finalizers}})
			}
		}
		if chosen["before"] == "Terminating" {
			add("DELETE namespaces/$ns", nil)
			finalize()
		} else {
			finalize()
		}
		s.Steps = append(s.Steps, deletion("namespaces/$ns", chosen))
		add("GET namespaces/$ns", nil)
		add("POST pods", object{"metadata": object{"name": "p"}, "spec": object{"containers": []any{object{"name": "c", "image": "i"}}}})
		add("POST namespaces", object{"metadata": metadata})
		s.Steps = append(s.Steps, deletion("namespaces/$ns", chosen))
		add("PUT namespaces/$ns/finalize", object{"metadata": object{"name": "$ns"}, "spec": object{}})
		add("GET namespaces/$ns", nil)
		s.Steps = append(s.Steps, step{Do: "PATCH namespaces/$ns", As: "merge", Body: object{"metadata": object{"finalizers": nil}}})
		s.Steps = append(s.Steps, deletion("namespaces/$ns", chosen))
		add("GET namespaces/$ns", nil)
		return s
	}))
}

// TestPodDelete deletes Pods, and confirms their termination.
func TestPodDelete(t *testing.T) {
	axes := append([]axis{
		{"finalizers", []any{absent, []any{"example.com/f"}, []any{"orphan"}}},
		{"nodeName", []any{"", "n"}},
		{"phase", []any{absent, "Running", "Failed"}},
		{"terminationGracePeriodSeconds", []any{absent, 0, 10}},
		{"gracePeriodSeconds", []any{absent, 0, 1, 60, -1}},
	}, optionAxes...)
	checkGroups(t, few, sample(t, axes, func(chosen map[string]any) scenario {
		metadata, spec := object{"name": "p"}, object{"containers": []any{object{"name": "c", "image": "i"}}, "nodeName": chosen["nodeName"]}
		if chosen["finalizers"] != absent {
			metadata["finalizers"] = chosen["finalizers"]
		}
		if period := chosen["terminationGracePeriodSeconds"]; period != absent {
			spec["terminationGracePeriodSeconds"] = period
		}
		s := scenario{Steps: []step{{Do: "POST pods", Body: object{"metadata": metadata, "spec": spec}}}}
		if phase := chosen["phase"]; phase != absent {
			s.Steps = append(s.Steps, step{Do: "PATCH pods/p/status", As: "merge", Body: object{"status": object{"phase": phase}}})
		}
		later := map[string]any{"gracePeriodSeconds": 5}
		s.Steps = append(s.Steps,
			deletion("pods/p", chosen),
			step{Do: "GET pods/p"},
			deletion("pods/p", chosen),
			deletion("pods/p", later),
			step{Do: "GET pods/p"},
			step{Do: "PATCH pods/p", As: "merge", Body: object{"metadata": object{"finalizers": nil}}},
			deletion("pods/p", map[string]any{"gracePeriodSeconds": 0}),
			step{Do: "GET pods/p"},
		)
		return s
	}))
}
