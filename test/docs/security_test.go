// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

// Package docs checks the documentation against the tree.
package docs

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// claim is a link to a file of tests, whose text names tests in it. testName is a name in the
// text.
var (
	claim    = regexp.MustCompile(`\[([^\]]*)\]\(([^)]*_test\.go)\)`)
	testName = regexp.MustCompile(`\b(?:Test|Fuzz)\w+`)
)

// TestClaims checks that the tests that documents name exist.
func TestClaims(t *testing.T) {
	docs := os.DirFS(filepath.Join("..", "..", "docs"))
	err := fs.WalkDir(docs, ".", func(document string, _ fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(document) != ".md" {
			return err
		}
		for _, found := range claim.FindAllStringSubmatch(read(t, document), -1) {
			text, file := found[1], found[2]
			for _, name := range testName.FindAllString(text, -1) {
				if !strings.Contains(read(t, filepath.Join(filepath.Dir(document), file)), "\nfunc "+name+"(") {
					t.Errorf("%s: %s is not in %s", document, name, file)
				}
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestSecurity checks that each section of docs/security.md about an attacker names a
// test.
func TestSecurity(t *testing.T) {
	_, protects, _ := strings.Cut(read(t, "security.md"), "\n## From whom it protects\n")
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

// read returns a file, whose path is relative to docs.
func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", path))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
