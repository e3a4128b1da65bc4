// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"strings"
)

// pin is the module whose go.mod pins the release.
const pin = "test/kubernetes/kube"

// release is a release of Kubernetes, in the module cache.
type release struct {
	version    string // v1.N.P
	kubernetes string // directory of k8s.io/kubernetes
	api        string // directory of k8s.io/api at the version that belongs to it
	apiserver  string // directory of k8s.io/apiserver, likewise
	libraryAPI string // directory of the k8s.io/api that we compile against
}

func findRelease(version string) (release, error) {
	if version == "" {
		pinned, err := goCommand("-C", pin, "list", "-m", "-f", "{{.Version}}", "k8s.io/kubernetes")
		if err != nil {
			return release{}, err
		}
		version = strings.TrimSpace(pinned)
	}
	minor, ok := strings.CutPrefix(version, "v1.")
	if !ok {
		return release{}, fmt.Errorf("%q is not of the form v1.N.P", version)
	}
	r := release{version: version}
	for path, dir := range map[string]*string{
		"k8s.io/kubernetes@" + version: &r.kubernetes,
		"k8s.io/api@v0." + minor:       &r.api,
		"k8s.io/apiserver@v0." + minor: &r.apiserver,
	} {
		out, err := goCommand("mod", "download", "-json", path)
		if err != nil {
			return release{}, err
		}
		var module struct{ Dir string }
		if err := json.Unmarshal([]byte(out), &module); err != nil {
			return release{}, fmt.Errorf("go mod download %s: %w", path, err)
		}
		*dir = module.Dir
	}
	library, err := goCommand("list", "-m", "-f", "{{.Dir}}", "k8s.io/api")
	r.libraryAPI = strings.TrimSpace(library)
	return r, err
}

func goCommand(args ...string) (string, error) {
	out, err := exec.Command("go", args...).Output()
	if err != nil {
		var exit *exec.ExitError
		if errors.As(err, &exit) {
			err = fmt.Errorf("%w: %s%s", err, exit.Stderr, out)
		}
		return "", fmt.Errorf("go %s: %w", strings.Join(args, " "), err)
	}
	return string(out), nil
}
