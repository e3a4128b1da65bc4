// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

// Command upstream compares pkg/corepod with a release of Kubernetes and names what
// has moved since the release that pkg/corepod was last ported from: fields of Pods,
// feature gates, and declarations, each with the file of ours that mirrors it. The
// release is the one that test/kubernetes/kube/go.mod pins, or -version.
//
// What was ported is recorded in pkg/corepod/upstream.lock. With -update the command
// records the release instead of comparing, and keeps the files in the lock.
//
// It runs in the root of the repository and exits with 1 if anything has moved.
package main

import (
	"cmp"
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"slices"

	"github.com/borough-io/borough/pkg/corepod/features"
)

const lockFile = "pkg/corepod/upstream.lock"

var errMoved = errors.New("the release and the port differ")

func main() {
	version := flag.String("version", "", "release of Kubernetes, such as v1.36.3; the default is the pinned one")
	update := flag.Bool("update", false, "record the release in "+lockFile)
	flag.Parse()
	if err := run(*version, *update); err != nil {
		fmt.Fprintln(os.Stderr, "upstream:", err)
		os.Exit(1)
	}
}

func run(version string, update bool) error {
	release, err := findRelease(version)
	if err != nil {
		return fmt.Errorf("find the release: %w", err)
	}
	now, err := examine(release)
	if err != nil {
		return fmt.Errorf("examine Kubernetes %s: %w", release.version, err)
	}
	ported, err := readLock(lockFile)
	if err != nil {
		return err
	}
	if update {
		now.keepFiles(ported)
		if err := now.write(lockFile); err != nil {
			return err
		}
		ported = now
	}
	moved := slices.Concat(compare(ported, now), checkGates(features.Disabled(), now), checkFiles(ported))
	for _, line := range moved {
		fmt.Println(line)
	}
	if len(moved) > 0 {
		return fmt.Errorf("%w in %d places: Kubernetes %s, %s %s", errMoved, len(moved), now.version, lockFile, ported.version)
	}
	fmt.Printf("pkg/corepod mirrors Kubernetes %s: %d declarations, %d feature gates, %d fields\n",
		now.version, len(now.declarations), len(now.gates), len(now.fields))
	return nil
}

// examine finds what of a release concerns Pods.
func examine(r release) (*record, error) {
	graph := newGraph(r.kubernetes)
	declarations, gates, err := graph.reach(entryPoints)
	if err != nil {
		return nil, err
	}
	states, err := gateStates(r)
	if err != nil {
		return nil, fmt.Errorf("feature gates: %w", err)
	}
	fields, err := compareFields(r.api, r.libraryAPI, "Pod")
	if err != nil {
		return nil, fmt.Errorf("fields: %w", err)
	}
	now := &record{version: r.version, declarations: declarations, gates: map[string]string{}, fields: fields}
	for _, gate := range slices.Concat(slices.Collect(maps.Keys(gates)), features.Disabled()) {
		now.gates[gate] = cmp.Or(states[gate], unknown)
		if gates[gate] {
			now.dropping = append(now.dropping, gate)
		}
	}
	return now, nil
}
