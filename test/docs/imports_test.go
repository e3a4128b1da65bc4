// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const module = "github.com/borough-io/borough/"

// importsOf returns the packages of the module that each of its packages imports, without tests.
func importsOf(t *testing.T) map[string][]string {
	t.Helper()
	const root = "../.."
	imports := map[string][]string{}
	for _, dir := range []string{"boroughtest", "cmd", "pkg"} {
		err := filepath.WalkDir(filepath.Join(root, dir), func(file string, _ fs.DirEntry, err error) error {
			if err != nil || !strings.HasSuffix(file, ".go") || strings.HasSuffix(file, "_test.go") {
				return err
			}
			name, err := filepath.Rel(root, filepath.Dir(file))
			if err != nil {
				return err
			}
			parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ImportsOnly)
			if err != nil {
				return err
			}
			for _, spec := range parsed.Imports {
				imported, err := strconv.Unquote(spec.Path.Value)
				if err != nil {
					return err
				}
				if own, ok := strings.CutPrefix(imported, module); ok {
					imports[name] = append(imports[name], own)
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return imports
}

// within reports whether a package is a directory, or below it.
func within(name, dir string) bool { return name == dir || strings.HasPrefix(name, dir+"/") }

// find returns the first group of a pattern in a document.
func find(t *testing.T, file, pattern string) string {
	t.Helper()
	content, err := os.ReadFile(path.Join("../../docs", file))
	if err != nil {
		t.Fatal(err)
	}
	match := regexp.MustCompile(pattern).FindStringSubmatch(string(content))
	if match == nil {
		t.Fatalf("%s does not match %q", file, pattern)
	}
	return match[1]
}

// TestImportOrder checks the order of the packages in docs/development.md.
func TestImportOrder(t *testing.T) {
	var order [][]string
	for _, step := range strings.Split(find(t, "development.md", `later in this order: (.*?)\.`), ", ") {
		var dirs []string
		for _, name := range strings.Split(step, " and ") {
			dir := name
			if _, err := os.Stat(path.Join("../..", dir)); err != nil {
				dir = "pkg/" + name
			}
			if _, err := os.Stat(path.Join("../..", dir)); err != nil {
				t.Fatal(err)
			}
			dirs = append(dirs, dir)
		}
		order = append(order, dirs)
	}
	rank := func(name string) int {
		return slices.IndexFunc(order, func(dirs []string) bool {
			return slices.ContainsFunc(dirs, func(dir string) bool { return within(name, dir) })
		})
	}
	for name, imports := range importsOf(t) {
		for _, imported := range imports {
			if from, to := rank(name), rank(imported); to >= 0 && to < from {
				t.Errorf("%s imports %s, which is earlier in the order", name, imported)
			}
		}
	}
}

// TestControllerImports checks what docs/development.md and docs/architecture.md say of the imports
// of the namespace controller.
func TestControllerImports(t *testing.T) {
	const sentence = "`pkg/controller/namespace` imports only (.*?)\\."
	text := find(t, "development.md", sentence)
	if other := find(t, "architecture.md", sentence); text != other {
		t.Errorf("development.md says %q, architecture.md says %q", text, other)
	}
	allowed := []string{"pkg/controller/namespace", "pkg/apis/tenancy/v1", "pkg/generated"}
	for _, match := range regexp.MustCompile("`(.*?)`").FindAllStringSubmatch(text, -1) {
		allowed = append(allowed, match[1])
	}
	for name, imports := range importsOf(t) {
		for _, imported := range imports {
			if within(name, "pkg/controller/namespace") && !slices.ContainsFunc(allowed, func(dir string) bool { return within(imported, dir) }) {
				t.Errorf("%s imports %s", name, imported)
			}
		}
	}
}

// TestImportDiagram checks the diagram of the packages in docs/architecture.md: each arrow is an
// import, and no import is against the arrows.
func TestImportDiagram(t *testing.T) {
	diagram := find(t, "architecture.md", "(?s)## Packages.*?```mermaid\n(.*?)```")
	dirs := map[string]string{"boroughtest": "boroughtest"}
	for _, match := range regexp.MustCompile(`(\w+)\["([\w/-]+)`).FindAllStringSubmatch(diagram, -1) {
		dirs[match[1]] = match[2]
	}
	arrows := map[string][]string{}
	for _, match := range regexp.MustCompile(`(?m)^  (\w+)(?:\[".*?"\])? --> (\w+)`).FindAllStringSubmatch(diagram, -1) {
		arrows[match[1]] = append(arrows[match[1]], match[2])
	}
	all := importsOf(t)
	imports := func(from, to string) bool {
		for name, imported := range all {
			if within(name, dirs[from]) && slices.ContainsFunc(imported, func(name string) bool { return within(name, dirs[to]) }) {
				return true
			}
		}
		return false
	}
	for from, targets := range arrows {
		for _, to := range targets {
			if dirs[from] == "" || dirs[to] == "" {
				t.Errorf("no package of the arrow %s --> %s", from, to)
			} else if !imports(from, to) {
				t.Errorf("%s does not import %s", dirs[from], dirs[to])
			}
		}
	}
	var below func(from string, seen map[string]bool)
	below = func(from string, seen map[string]bool) {
		for _, to := range arrows[from] {
			if !seen[to] {
				seen[to] = true
				below(to, seen)
			}
		}
	}
	for _, upper := range slices.Sorted(maps.Keys(dirs)) {
		seen := map[string]bool{}
		below(upper, seen)
		for lower := range seen {
			if within(dirs[lower], dirs[upper]) || within(dirs[upper], dirs[lower]) {
				continue // one contains the other
			}
			if imports(lower, upper) {
				t.Errorf("%s imports %s, which is above it", dirs[lower], dirs[upper])
			}
		}
	}
}
