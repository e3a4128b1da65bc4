// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"runtime/debug"
	"testing"

	componentversion "k8s.io/component-base/version"
)

// TestBoroughVersion checks which version a server has, depending on how it was built.
func TestBoroughVersion(t *testing.T) {
	const released = "v0.1.0"
	other := debug.Module{Path: "example.com/other", Version: "v9.9.9"}
	for name, tc := range map[string]struct {
		linked string
		built  *debug.BuildInfo
		want   string
	}{
		"make":                {"v0.1.0-12+1a2b3c4", &debug.BuildInfo{Main: debug.Module{Path: modulePath, Version: "v0.2.0"}}, "v0.1.0-12+1a2b3c4"},
		"go install":          {"v0.0.0-master+" + unset, &debug.BuildInfo{Main: debug.Module{Path: modulePath, Version: released}}, released},
		"another module":      {unset, &debug.BuildInfo{Main: other, Deps: []*debug.Module{&other, {Path: modulePath, Version: released}}}, released},
		"go build":            {unset, &debug.BuildInfo{Main: debug.Module{Path: modulePath, Version: "(devel)"}}, "unknown"},
		"without information": {unset, nil, "unknown"},
	} {
		t.Run(name, func(t *testing.T) {
			got := boroughVersion(tc.linked, func() (*debug.BuildInfo, bool) { return tc.built, tc.built != nil })
			if got != tc.want {
				t.Errorf("got %s, want %s", got, tc.want)
			}
		})
	}
}

// TestUnsetVersion checks that the version that the linker has not set is recognized. That of
// a test is not set.
func TestUnsetVersion(t *testing.T) {
	if got := boroughVersion(componentversion.Get().GitVersion, func() (*debug.BuildInfo, bool) { return nil, false }); got != "unknown" {
		t.Errorf("got %s", got)
	}
}
