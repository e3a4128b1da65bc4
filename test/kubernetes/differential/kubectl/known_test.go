// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package kubectl

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/borough-io/borough/test/harness"
)

// TestDocumented checks that the documentation has each difference.
func TestDocumented(t *testing.T) {
	data, err := os.ReadFile(filepath.Join(harness.Root, "docs", "reference", "differences.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, difference := range slices.Concat(knownDifferences, ownGroupDifferences) {
		if !strings.Contains(string(data), difference.text) {
			t.Errorf("docs/reference/differences.md does not have: %s", difference.text)
		}
	}
}
