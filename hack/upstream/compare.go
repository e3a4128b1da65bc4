// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
)

// compare says what has to be ported to get from one record to the other.
func compare(ported, now *record) (moved []string) {
	add := func(format string, args ...any) { moved = append(moved, fmt.Sprintf(format, args...)) }
	for _, field := range union(ported.fields, now.fields) {
		switch is, was := now.fields[field], ported.fields[field]; {
		case is == was:
		case is == "":
			add("field %s: gone, was in %s", field, was)
		case is == inLibrary:
			add("field %s: in the library but not in the release: drop it in pkg/corepod/features", field)
		default:
			add("field %s: in %s, was in %s", field, is, cmp.Or(was, "none"))
		}
	}
	for _, gate := range union(ported.gates, now.gates) {
		if is, was := now.gates[gate], ported.gates[gate]; is != was {
			add("gate %s: %s, was %s", gate, cmp.Or(is, "no longer read"), cmp.Or(was, "not read"))
		}
	}
	for _, name := range union(ported.declarations, now.declarations) {
		is, was := now.declarations[name], ported.declarations[name]
		switch {
		case is.hash == was.hash:
		case is.hash == "":
			add("gone %s: %s", name, was.file)
		case was.hash == "":
			add("new %s", name)
		default:
			add("changed %s: %s", name, was.file)
		}
	}
	return moved
}

// checkGates says which gates pkg/corepod/features has although they are on by default,
// and which it lacks although they are off.
func checkGates(disabled []string, now *record) (moved []string) {
	for _, gate := range disabled {
		if strings.HasPrefix(now.gates[gate], "on ") {
			moved = append(moved, fmt.Sprintf("gate %s: %s, but pkg/corepod/features drops its fields", gate, now.gates[gate]))
		}
	}
	for _, gate := range slices.Sorted(slices.Values(now.dropping)) {
		if strings.HasPrefix(now.gates[gate], "off ") && !slices.Contains(disabled, gate) {
			moved = append(moved, fmt.Sprintf("gate %s: %s, but pkg/corepod/features does not drop its fields", gate, now.gates[gate]))
		}
	}
	return moved
}

// checkFiles says which declarations have no file, and which files are not there.
func checkFiles(r *record) (moved []string) {
	for _, name := range slices.Sorted(maps.Keys(r.declarations)) {
		switch file := r.declarations[name].file; file {
		case noFile:
		case unmapped:
			moved = append(moved, fmt.Sprintf("no file for %s: name the one that mirrors it in %s", name, lockFile))
		default:
			if _, err := os.Stat(file); err != nil {
				moved = append(moved, fmt.Sprintf("no file for %s: %v", name, err))
			}
		}
	}
	return moved
}

func union[V any](a, b map[string]V) []string {
	all := maps.Clone(a)
	maps.Copy(all, b)
	return slices.Sorted(maps.Keys(all))
}
