// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"cmp"
	"crypto/sha256"
	"errors"
	"fmt"
	"go/ast"
	"go/scanner"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"
)

// record is what of a release concerns Pods.
type record struct {
	version      string
	declarations map[string]entry
	gates        map[string]string // the states of those that the declarations read
	fields       map[string]string // where each is, in the release or the library
	dropping     []string          // the gates that decide what fields are dropped; not recorded
}

// entry is a declaration: a hash of its source and the file of ours that mirrors it.
type entry struct{ hash, file string }

const (
	// noFile is written for what is not mirrored, because it has no effect here.
	noFile = "-"
	// unmapped is written for what no file has been named for yet.
	unmapped = "?"
)

const header = `# The release of Kubernetes that pkg/corepod mirrors, and what of it. hack/upstream
# writes this file, except for the last word of each declaration: the file that mirrors
# it, or "-" if none has to. See docs/development.md.
`

// hash returns a hash of the tokens of a node, which comments and spaces do not change.
func (f sourceFile) hash(fset *token.FileSet, node ast.Node) string {
	from, to := fset.Position(node.Pos()).Offset, fset.Position(node.End()).Offset
	source := f.source[from:to]
	var s scanner.Scanner
	s.Init(token.NewFileSet().AddFile("", -1, len(source)), source, func(token.Position, string) {}, 0)
	sum := sha256.New()
	for {
		_, tok, text := s.Scan()
		if tok == token.EOF {
			return fmt.Sprintf("%x", sum.Sum(nil))[:12]
		}
		if tok != token.SEMICOLON { // which line breaks stand for
			fmt.Fprintf(sum, "%d %s\n", tok, text)
		}
	}
}

// readLock reads what was recorded; nothing, if there is no lock.
func readLock(file string) (*record, error) {
	r := &record{declarations: map[string]entry{}, gates: map[string]string{}, fields: map[string]string{}}
	f, err := os.Open(file)
	if errors.Is(err, fs.ErrNotExist) {
		return r, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		kind, rest, _ := strings.Cut(lines.Text(), " ")
		key, value, _ := strings.Cut(rest, " ")
		switch kind {
		case "kubernetes":
			r.version = key
		case "field":
			r.fields[key] = value
		case "gate":
			r.gates[key] = value
		case "declaration":
			hash, file, _ := strings.Cut(value, " ")
			r.declarations[key] = entry{hash, file}
		}
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("read %s: %w", file, err)
	}
	return r, nil
}

func (r *record) write(file string) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%skubernetes %s\n", header, r.version)
	for _, field := range slices.Sorted(maps.Keys(r.fields)) {
		fmt.Fprintf(&b, "field %s %s\n", field, r.fields[field])
	}
	for _, gate := range slices.Sorted(maps.Keys(r.gates)) {
		fmt.Fprintf(&b, "gate %s %s\n", gate, r.gates[gate])
	}
	for _, name := range slices.Sorted(maps.Keys(r.declarations)) {
		fmt.Fprintf(&b, "declaration %s %s %s\n", name, r.declarations[name].hash, r.declarations[name].file)
	}
	return os.WriteFile(file, []byte(b.String()), 0o644)
}

// keepFiles takes over which files mirror the declarations.
func (r *record) keepFiles(from *record) {
	for name, d := range r.declarations {
		d.file = cmp.Or(from.declarations[name].file, unmapped)
		r.declarations[name] = d
	}
}
