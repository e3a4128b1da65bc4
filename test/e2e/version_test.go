// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"regexp"
	"testing"

	utilversion "k8s.io/apimachinery/pkg/util/version"
	apimachineryversion "k8s.io/apimachinery/pkg/version"
)

// TestVersion checks that clients get a version of Kubernetes, and users see that of
// Borough.
func TestVersion(t *testing.T) {
	t.Parallel()
	var got apimachineryversion.Info
	wantAnswer(t, borough.HTTP(t).Do(t, "GET", "/version", nil), 200).JSON(t, &got)
	version, err := utilversion.ParseSemantic(got.GitVersion)
	if err != nil {
		t.Fatal(err)
	}
	wantEqual(t, "major", utilversion.Itoa(version.Major()), got.Major)
	wantEqual(t, "minor", utilversion.Itoa(version.Minor()), got.Minor)
	if !version.AtLeast(utilversion.MustParseSemantic("1.36.0")) || !regexp.MustCompile(`^borough-v\d+\.\d+\.\d+`).MatchString(version.BuildMetadata()) {
		t.Errorf("got the version %s", got.GitVersion)
	}
	// kubectl warns if the versions are not close to each other.
	stdout, stderr, err := borough.TryKubectl(t, "", "version")
	if err != nil || stderr != "" {
		t.Errorf("kubectl version: %v\n%s", err, stderr)
	}
	wantContains(t, stdout, "Server Version: "+got.GitVersion)
}
