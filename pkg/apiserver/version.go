// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"regexp"
	"runtime/debug"
	"strings"

	utilversion "k8s.io/apimachinery/pkg/util/version"
	apimachineryversion "k8s.io/apimachinery/pkg/version"
	"k8s.io/component-base/compatibility"
)

// kubernetesRelease is the release of Kubernetes that a standalone server behaves like.
const kubernetesRelease = "1.37.2"

// kubernetesVersion is the version of a standalone server. Clients expect that of
// Kubernetes: kubectl warns if it is not close to its own, and others choose by it what
// they use. The version of Borough is in its build metadata.
type kubernetesVersion struct{ compatibility.EffectiveVersion }

// notInMetadata matches what is not allowed in build metadata.
var notInMetadata = regexp.MustCompile(`[^0-9A-Za-z.-]`)

// Info implements compatibility.EffectiveVersion.
func (v kubernetesVersion) Info() *apimachineryversion.Info {
	release := utilversion.MustParseSemantic(kubernetesRelease)
	info := v.EffectiveVersion.Info()
	info.Major, info.Minor = utilversion.Itoa(release.Major()), utilversion.Itoa(release.Minor())
	info.GitVersion = "v" + kubernetesRelease + "+borough-" + notInMetadata.ReplaceAllString(boroughVersion(info.GitVersion, debug.ReadBuildInfo), "-")
	// These are of the library.
	info.EmulationMajor, info.EmulationMinor = "", ""
	info.MinCompatibilityMajor, info.MinCompatibilityMinor = "", ""
	return info
}

const (
	modulePath = "github.com/borough-io/borough"
	// unset is in a version that the linker has not set.
	unset = "$Format"
)

// boroughVersion returns the version of Borough: the one that the linker has set or, in a
// binary that go install or another module has built, that of the module.
func boroughVersion(linked string, read func() (*debug.BuildInfo, bool)) string {
	if !strings.Contains(linked, unset) {
		return linked
	}
	if info, ok := read(); ok {
		for _, module := range append(info.Deps, &info.Main) {
			if module.Path == modulePath && strings.HasPrefix(module.Version, "v") {
				return module.Version
			}
		}
	}
	return "unknown"
}
