// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"debug/buildinfo"
	"encoding/json"
	"io"
	"log"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/registry"
	"github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
)

// TestIndex writes images of two architectures to a layout, and pushes them to a
// registry, from the binaries and from the layout.
func TestIndex(t *testing.T) {
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	defer server.Close()
	p := programs[0]
	layouts := options{bin: binaries(t), tag: "v1", archs: []string{"amd64", "arm64"}, out: t.TempDir(), sbom: t.TempDir(), created: "2026-01-02T03:04:05Z"}
	_, digest, err := layouts.publish(p)
	if err != nil {
		t.Fatal(err)
	}
	indexes := map[string]v1.ImageIndex{}
	if indexes["the layout"], err = readIndex(filepath.Join(layouts.out, p.name)); err != nil {
		t.Fatal(err)
	}
	address := strings.TrimPrefix(server.URL, "http://")
	for _, o := range []options{
		{bin: layouts.bin, tag: "made", archs: layouts.archs, registry: address},
		{push: layouts.out, tag: "pushed", registry: address},
	} {
		ref, pushed, err := o.publish(p)
		if err != nil {
			t.Fatal(err)
		}
		if pushed != digest {
			t.Errorf("the digest of %s is %s, in the layout %s", ref, pushed, digest)
		}
		if indexes[ref.Name()], err = remote.Index(ref); err != nil {
			t.Fatal(err)
		}
	}
	for where, index := range indexes {
		if got, err := index.Digest(); err != nil || got != digest {
			t.Errorf("the index in %s has the digest %s, not %s (%v)", where, got, digest, err)
		}
		manifest, err := index.IndexManifest()
		if err != nil {
			t.Fatal(err)
		}
		var platforms []string
		for _, m := range manifest.Manifests {
			platforms = append(platforms, m.Platform.String())
			image, err := index.Image(m.Digest)
			if err != nil {
				t.Fatal(err)
			}
			config, err := image.ConfigFile()
			if err != nil || config.Architecture != m.Platform.Architecture {
				t.Errorf("in %s, the image for %s has %+v (%v)", where, m.Platform, config, err)
			}
			checkDocument(t, filepath.Join(layouts.sbom, p.name+"_linux_"+m.Platform.Architecture+".spdx.json"), m.Digest)
		}
		if want := []string{"linux/amd64", "linux/arm64"}; !slices.Equal(platforms, want) {
			t.Errorf("the platforms in %s are %v, want %v", where, platforms, want)
		}
	}
}

// checkDocument checks that an SPDX document describes an image with the modules of
// this test, whose binary is in the image.
func checkDocument(t *testing.T, file string, image v1.Hash) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var d document
	if err := json.Unmarshal(text, &d); err != nil {
		t.Fatal(err)
	}
	if d.Packages[0].Version != image.String() {
		t.Errorf("the document %q describes %s, not %s", d.Name, d.Packages[0].Version, image)
	}
	ids, versions := map[string]bool{d.ID: true}, map[string]string{}
	for _, p := range d.Packages {
		if ids[p.ID] || !regexp.MustCompile(`^SPDXRef-[a-zA-Z0-9.-]+$`).MatchString(p.ID) {
			t.Errorf("the identifier %q of %s is used twice or malformed", p.ID, p.Name)
		}
		ids[p.ID], versions[p.Name] = true, p.Version
	}
	related := map[string]bool{}
	for _, r := range d.Relationships {
		if !ids[r.Element] || !ids[r.Related] {
			t.Errorf("a relationship of packages that are not there: %+v", r)
		}
		related[r.Related] = true
	}
	for _, p := range d.Packages {
		if !related[p.ID] {
			t.Errorf("nothing contains %s", p.Name)
		}
	}
	info, err := buildinfo.ReadFile(executable(t))
	if err != nil {
		t.Fatal(err)
	}
	if len(info.Deps) == 0 {
		t.Fatal("the binary of the test has no modules")
	}
	for _, m := range info.Deps {
		if path, version := replaced(m); versions[path] != version {
			t.Errorf("the document has %s at %q, the binary at %s", path, versions[path], version)
		}
	}
	if versions[caModule] == "" {
		t.Errorf("the document %q has no version of the CAs", d.Name)
	}
	if want := strings.TrimPrefix(info.GoVersion, "go"); versions["stdlib"] != want {
		t.Errorf("the document has Go %q, want %s", versions["stdlib"], want)
	}
}

// binaries returns a directory with the binaries of two architectures, which are that of
// this test.
func binaries(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for _, arch := range []string{"amd64", "arm64"} {
		if err := os.Mkdir(filepath.Join(dir, arch), 0o755); err != nil {
			t.Fatal(err)
		}
		for _, p := range programs {
			if err := os.Symlink(executable(t), filepath.Join(dir, arch, p.name)); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.WriteFile(filepath.Join(dir, arch, licensesFile), []byte("licenses"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func executable(t *testing.T) string {
	t.Helper()
	file, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return file
}
