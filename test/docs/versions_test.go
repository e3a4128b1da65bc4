// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestVersions checks the table of versions in docs/versions.md against the go.mod
// files and manifests that the tests use.
func TestVersions(t *testing.T) {
	pin := func(file, expression string) string {
		t.Helper()
		text, err := os.ReadFile(filepath.Join("..", "..", file))
		if err != nil {
			t.Fatal(err)
		}
		found := regexp.MustCompile(`(?m)`+expression).FindAllStringSubmatch(string(text), -1)
		if len(found) == 0 {
			t.Fatalf("%s has no %s", file, expression)
		}
		versions := make([]string, len(found))
		for i, match := range found {
			versions[i] = match[1]
		}
		if versions = slices.Compact(versions); len(versions) != 1 {
			t.Fatalf("%s has several %s: %v", file, expression, versions)
		}
		return versions[0]
	}
	minor := func(version string) string { return version[:strings.LastIndex(version, ".")] }
	var (
		kubernetes   = pin("test/kubernetes/kube/go.mod", `^\tk8s\.io/kubernetes v(\S+)`)
		oldest       = pin("artifacts/charts/borough/Chart.yaml", `^kubeVersion: ">=(1\.\d+)\.0-0"`)
		kubectl      = "1." + pin("test/kubernetes/go.mod", `^\tk8s\.io/kubectl v0\.(\S+)`)
		clientGo     = pin("go.mod", `^\tk8s\.io/client-go v(\S+)`)
		controllers  = pin("examples/controller/go.mod", `^\tsigs\.k8s\.io/controller-runtime v(\S+)`)
		externalEtcd = pin("test/kubernetes/etcd/go.mod", `^\tgo\.etcd\.io/etcd/server/v3 v(\S+)`)
		manifestEtcd = pin("artifacts/charts/borough/values.yaml", `image: registry\.k8s\.io/etcd:(\d+\.\d+\.\d+)-`)
		embeddedEtcd = pin("go.mod", `^\tgo\.etcd\.io/etcd/server/v3 v(\S+)`)
		goVersion    = minor(pin("go.mod", `^go (\S+)`))
		toolchain    = pin("go.mod", `^toolchain go(\S+)`)
		upstream     = minor(pin("pkg/corepod/upstream.lock", `^kubernetes v(\S+)`))
	)
	if release := pin("pkg/apiserver/version.go", `^const kubernetesRelease = "(\S+)"`); release != kubernetes {
		t.Errorf("a standalone server has version %s of Kubernetes, want %s", release, kubernetes)
	}
	if kubectl != kubernetes {
		t.Errorf("the tests have kubectl %s and %s", kubectl, kubernetes)
	}
	text := read(t, "versions.md")
	for _, row := range []string{
		fmt.Sprintf("| the cluster that it runs behind | Kubernetes %s or newer | %s |", oldest, kubernetes),
		fmt.Sprintf("| what Pods and the other kinds behave like | Kubernetes %s | %s |", upstream, kubernetes),
		fmt.Sprintf("| kubectl | | %s |", kubectl),
		fmt.Sprintf("| client-go | | %s |", clientGo),
		fmt.Sprintf("| controller-runtime, in a module that imports packages of Borough: they need client-go %s | 0.24 or newer | %s |", minor(clientGo), controllers),
		fmt.Sprintf("| an etcd of your own | %s or newer | %s and %s |", minor(externalEtcd), externalEtcd, embeddedEtcd),
		fmt.Sprintf("| the etcd in the manifests | %[1]s | %[1]s |", manifestEtcd),
		fmt.Sprintf("| the embedded etcd | %[1]s | %[1]s |", embeddedEtcd),
		fmt.Sprintf("| Go, to build it and to import its packages | %s or newer | %s |", goVersion, toolchain),
	} {
		if !strings.Contains(text, "\n"+row+"\n") {
			t.Errorf("docs/versions.md has no row %s", row)
		}
	}
}
