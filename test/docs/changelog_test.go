// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestReleaseNotes checks that the notes of each version in CHANGELOG.md are its
// section, with links that work outside of the repository.
func TestReleaseNotes(t *testing.T) {
	changelog := read(t, filepath.Join("..", "CHANGELOG.md"))
	versions := regexp.MustCompile(`(?m)^## \[(\d+\.\d+\.\d+[^]]*)\] - (\d{4}-\d{2}-\d{2}|Unreleased)$`).FindAllStringSubmatch(changelog, -1)
	if len(versions) == 0 || strings.Count(changelog, "\n## ") != len(versions) {
		t.Fatalf("a section has no heading ## [VERSION] - DATE; those with one are %q", versions)
	}
	link := regexp.MustCompile(`\]\(([^)]*)\)`)
	for _, version := range versions {
		notes := releaseNotes(t, "v"+version[1])
		if strings.Contains(notes, "\n## ") || !strings.Contains(notes, "\n### ") {
			t.Errorf("the notes of %s are not one section:\n%s", version[1], notes)
		}
		links := link.FindAllStringSubmatch(notes, -1)
		for _, target := range links {
			path, relative := strings.CutPrefix(target[1], "https://github.com/borough-io/borough/blob/v"+version[1]+"/")
			if _, err := os.Stat(filepath.Join("..", "..", path)); relative && err != nil || !strings.HasPrefix(target[1], "https://") {
				t.Errorf("the notes of %s have the link %s (%v)", version[1], target[1], err)
			}
		}
		if want := len(link.FindAllString(changelog, -1)); len(links) == 0 || len(links) > want {
			t.Errorf("the notes of %s have %d links, the changelog %d", version[1], len(links), want)
		}
	}
	if first := "v" + versions[0][1]; strings.ReplaceAll(releaseNotes(t, first+"-rc.1"), first+"-rc.1/", first+"/") != releaseNotes(t, first) {
		t.Errorf("the notes of a pre-release are not those of %s", first)
	}
	if output, err := exec.Command("../../hack/release-notes.sh", "v999.0.0").CombinedOutput(); err == nil || !strings.Contains(string(output), "no section ## [999.0.0]") {
		t.Errorf("the notes of a version without a section: %s (%v)", output, err)
	}
}

func releaseNotes(t *testing.T, version string) string {
	t.Helper()
	output, err := exec.Command("../../hack/release-notes.sh", version).Output()
	if err != nil {
		t.Fatal(err)
	}
	return string(output)
}
