// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestLoad runs the commands that are printed, with programs that print their arguments.
func TestLoad(t *testing.T) {
	bin := binaries(t)
	out := filepath.Join(t.TempDir(), "it's bin")
	for _, tc := range []struct {
		name    string
		options options
		want    []string // for each image; IMAGE is its name
	}{
		{"one architecture", options{bin: bin, tag: "v1", archs: []string{"arm64"}, out: out}, []string{
			"docker load --input " + out + "/IMAGE.tar",
			"kind load image-archive " + out + "/IMAGE.tar",
			"ctr --namespace=k8s.io images import " + out + "/IMAGE.tar",
		}},
		{"two architectures", options{bin: bin, tag: "v1", archs: []string{"amd64", "arm64"}, out: out + "/both"}, []string{
			"skopeo copy --all oci:" + out + "/both/IMAGE docker://REGISTRY/IMAGE:v1",
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var want []string
			for _, p := range programs {
				if _, _, err := tc.options.publish(p); err != nil {
					t.Fatal(err)
				}
				for _, line := range tc.want {
					want = append(want, strings.ReplaceAll(line, "IMAGE", p.name))
				}
			}
			where, commands, _ := strings.Cut(tc.options.load(), "\n")
			if !strings.Contains(where, " are in "+tc.options.out+";") {
				t.Errorf("got %q, want the directory %s", where, tc.options.out)
			}
			got := strings.Split(strings.TrimSpace(runShell(t, commands)), "\n")
			slices.Sort(got)
			slices.Sort(want)
			if !slices.Equal(got, want) {
				t.Errorf("the commands\n%s\nrun\n%s\nwant\n%s", commands, strings.Join(got, "\n"), strings.Join(want, "\n"))
			}
		})
	}
	for _, pushed := range []options{{registry: "registry.example.com", archs: []string{"arm64"}}, {push: "layouts", archs: []string{""}}} {
		if got := pushed.load(); got != "" {
			t.Errorf("with images that are pushed, got %q", got)
		}
	}
}

// runShell runs commands, with programs that print their name and arguments.
func runShell(t *testing.T, commands string) string {
	t.Helper()
	dir := t.TempDir()
	for _, name := range []string{"docker", "kind", "ctr", "skopeo"} {
		script := fmt.Sprintf("#!/bin/sh\necho %s \"$@\"\n", name)
		if err := os.WriteFile(filepath.Join(dir, name), []byte(script), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.CommandContext(t.Context(), "sh", "-c", commands)
	cmd.Env = append(os.Environ(), "PATH="+dir+":"+os.Getenv("PATH"))
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return string(out)
}
