// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

// Package docs checks the documentation against the tree.
package docs

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// claim is a link to a test.
var claim = regexp.MustCompile(`\[((?:Test|Fuzz)\w+)\]\(([^)]*)\)`)

// TestSecurity checks that the tests that docs/security.md names exist, and that
// each of its sections about an attacker names one.
func TestSecurity(t *testing.T) {
	docs := filepath.Join("..", "..", "docs")
	text, err := os.ReadFile(filepath.Join(docs, "security.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, found := range claim.FindAllSubmatch(text, -1) {
		name, file := string(found[1]), string(found[2])
		code, err := os.ReadFile(filepath.Join(docs, file))
		if err != nil {
			t.Errorf("%s: %v", name, err)
		} else if !strings.Contains(string(code), "\nfunc "+name+"(") {
			t.Errorf("%s is not in %s", name, file)
		}
	}
	_, protects, _ := strings.Cut(string(text), "\n## From whom it protects\n")
	protects, _, _ = strings.Cut(protects, "\n## ")
	sections := strings.Split(protects, "\n### ")[1:]
	if len(sections) == 0 {
		t.Fatal("there are no sections about attackers")
	}
	for _, section := range sections {
		if !claim.MatchString(section) {
			title, _, _ := strings.Cut(section, "\n")
			t.Errorf("%q names no test", title)
		}
	}
}
