// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package requestlimits_test

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	. "github.com/borough-io/borough/pkg/requestlimits"
)

// TestDocs checks that the reference states each limit as it is.
func TestDocs(t *testing.T) {
	data, err := os.ReadFile("../../docs/reference/request-limits.md")
	if err != nil {
		t.Fatal(err)
	}
	constants := map[string]int{
		"MaxQuantityLength": MaxQuantityLength, "MaxQuantityExponent": MaxQuantityExponent, "MaxDepth": MaxDepth,
		"MaxContainers": MaxContainers, "MaxLimitRangeItems": MaxLimitRangeItems, "MaxManagers": MaxManagers, "MaxAppliers": MaxAppliers, "MaxOwners": MaxOwners, "MaxNameLength": MaxNameLength, "MaxElements": MaxElements,
		"MaxPatchOperations": MaxPatchOperations, "MaxPatchCopyBytes": MaxPatchCopyBytes, "MaxPatchElements": MaxPatchElements, "MaxMergeComparisons": MaxMergeComparisons,
		"MaxYAMLNodes": MaxYAMLNodes, "MaxAliasBytes": MaxAliasBytes, "MaxErrors": MaxErrors, "MaxRepeatedFields": MaxRepeatedFields, "MaxSelectorTerms": MaxSelectorTerms, "MaxSelectorErrors": MaxSelectorErrors,
	}
	source, err := os.ReadFile("limits.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, declared := range regexp.MustCompile(`(?m)^\t(Max\w+) = `).FindAllStringSubmatch(string(source), -1) {
		if _, known := constants[declared[1]]; !known {
			t.Errorf("%s is not in this test", declared[1])
		}
	}
	for name, value := range constants {
		row := regexp.MustCompile("(?m)^\\|.*\\|(.*)\\| `" + name + "`").FindStringSubmatch(string(data))
		if row == nil || !strings.Contains(" "+row[1]+" ", fmt.Sprintf(" %d", value)) {
			t.Errorf("the table does not have %s as %d: %q", name, value, row)
		}
	}
}
