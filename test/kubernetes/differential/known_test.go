// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package differential

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/borough-io/borough/test/harness"
	"github.com/borough-io/borough/test/kubernetes/differential/sides"
)

// exchange is a request and the folded responses of both sides.
type exchange struct {
	step          step
	kube, borough *answer
	after         *exchange // the previous exchange, or nil
	// end means that the scenario ends here, because the objects of the sides now
	// differ.
	end bool
}

// difference is an intentional difference from Kubernetes.
// docs/reference/differences.md explains it under the id.
type difference struct {
	id string
	// fold makes responses equal that differ only by this. It is nil if the tests
	// don't cause the difference.
	fold func(*exchange)
	// unreadable means that a mismatch that remains is shown as it was before the
	// fold.
	unreadable bool
	// folded counts the responses that fold has changed.
	folded atomic.Int64
}

// knownDifferences are all intentional differences. Bugs do not belong here.
var knownDifferences = []*difference{
	// Both sides are started so that these do not occur.
	{id: "other-kinds"},
	{id: "garbage-collection"},
	{id: "default-limits"},
	{id: "namespace-templates"},
	// In the tests, only the administrator impersonates.
	{id: "constrained-impersonation"},
	// TestBootstrapPolicy has these.
	{id: "bootstrap-roles"},
	// TestGracePeriod causes this one.
	{id: "quota-grace-period"},
	// The tests do not read quotas, or resize Pods, while Pods hold a Namespace.
	{id: "purge-order"},
	// The tests send nothing large enough for these.
	{id: "cost-of-limitranges"},
	{id: "rule-combinations"},
	{id: "request-limits"},

	{id: "authentication", fold: foldAudiences},
	{id: "open-paths", fold: foldOpenPaths},
	{id: "visible-namespaces", fold: foldVisibleNamespaces},
	{id: "aggregated-rules", fold: foldAggregatedRules},
	{id: "rights-in-both-groups", fold: foldOwnRights},
	{id: "repeated-roles", fold: foldRepeatedRules},
	{id: "quota-status", fold: foldQuotaStatus},
	{id: "quota-rules", fold: foldQuotaRules},
	{id: "quota-column", fold: foldQuotaColumn},
	{id: "quota-last", fold: foldQuotaLast},
	{id: "quota-growth", fold: foldQuotaGrowth},
	{id: "quota-unchanged", fold: foldQuotaUnchanged},
	{id: "quota-values", fold: foldQuotaValues},
	{id: "quota-numbers", fold: foldQuotaNumbers},
	{id: "quota-holders", fold: foldQuotaHolders},
	{id: "quota-sums", fold: foldSums},
	{id: "quota-notation", fold: foldNotation},
	{id: "finalizers-first", fold: foldFinalizersFirst},
	{id: "finalizers-with-content", fold: foldFinalizersWithContent},
	{id: "collections-go-on", fold: foldCollection},
	{id: "unchanged-by-resize", fold: foldUnchangedByResize},
	{id: "large-quantities", fold: foldLargeQuantities},
	{id: "contradicting-limitranges", fold: foldContradictions},
	{id: "diffs-in-messages", fold: foldMessages(func(message string) string {
		if refusesRights(message) {
			return message
		}
		head, _, _ := strings.Cut(message, "\n")
		return head
	})},
	{id: "values-in-messages", fold: foldMessages(foldValues)},
	{id: "types-in-messages", fold: foldMessages(func(message string) string {
		return goTypes.ReplaceAllString(message, "$1")
	})},
	{id: "keys-in-messages", fold: foldMessages(func(message string) string {
		return groupInKeys.ReplaceAllString(message, "Key: $1/")
	})},
	{id: "managed-fields-alone", fold: foldMetadataAlone},
	{id: "errors-of-clients", fold: foldClientErrors},
	{id: "random-order", fold: foldOrder, unreadable: true},
}

// TestDocumented checks that the documentation has each difference.
func TestDocumented(t *testing.T) {
	data, err := os.ReadFile(filepath.Join(harness.Root, "docs", "reference", "differences.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, difference := range knownDifferences {
		if !strings.Contains(string(data), `<a id="`+difference.id+`"></a>`) {
			t.Errorf("docs/reference/differences.md does not have %s", difference.id)
		}
	}
	for _, plugin := range sides.Absent {
		if !strings.Contains(string(data), "`"+plugin+"`") {
			t.Errorf("docs/reference/differences.md does not name the admission plugin %s", plugin)
		}
	}
	ids := regexp.MustCompile(`<a id="([^"]*)"></a>`).FindAllStringSubmatch(string(data), -1)
	if len(ids) != len(knownDifferences) {
		t.Errorf("docs/reference/differences.md has %d differences, the test %d", len(ids), len(knownDifferences))
	}
}

// TestKnown checks that each difference still occurs, with the scenario of its
// name.
func TestKnown(t *testing.T) {
	scenarios := map[string]scenario{}
	for _, s := range readScenarios(t, "testdata/differences.yaml") {
		scenarios[s.Name] = s
	}
	for _, difference := range knownDifferences {
		if difference.fold == nil {
			continue
		}
		s, found := scenarios["differences: "+difference.id]
		if !found {
			t.Errorf("there is no scenario for %s", difference.id)
			continue
		}
		before := difference.folded.Load()
		checkGroups(t, handwritten, []scenario{s})
		if difference.folded.Load() == before {
			t.Errorf("the scenario for %s does not show it", difference.id)
		}
	}
}

// TestTooLarge causes errors-of-clients with an object above etcd's limit,
// which is too large for a file of scenarios.
func TestTooLarge(t *testing.T) {
	large := object{"name": "E", "value": strings.Repeat("x", 1600<<10)}
	container := object{"name": "c", "image": "i", "env": []any{large}}
	s := scenario{Name: "too large", Steps: []step{
		{Do: "POST pods", Body: object{"metadata": object{"name": "p"}, "spec": object{"containers": []any{container}}}},
	}}
	i := slices.IndexFunc(knownDifferences, func(d *difference) bool { return d.id == "errors-of-clients" })
	before := knownDifferences[i].folded.Load()
	check(t, []scenario{s})
	if knownDifferences[i].folded.Load() == before {
		t.Error("the responses of the sides are equal")
	}
}
