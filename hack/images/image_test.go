// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/tar"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	"github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"golang.org/x/crypto/x509roots/fallback/bundle"
)

// TestReproducible checks that the digest depends on the content of the binary, and not
// on its directory, its mode or its time.
func TestReproducible(t *testing.T) {
	for _, p := range programs {
		first := digest(t, build(t, p, "binary", 0o755, time.Now()))
		if again := digest(t, build(t, p, "binary", 0o700, time.Unix(0, 0))); again != first {
			t.Errorf("%s: digests %s and %s of the same binary", p.name, first, again)
		}
		if other := digest(t, build(t, p, "other", 0o755, time.Now())); other == first {
			t.Errorf("%s: digest %s of two binaries", p.name, other)
		}
	}
}

// TestPublish writes images to archives and pushes them to a registry, and reads them
// again.
func TestPublish(t *testing.T) {
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	defer server.Close()
	address := strings.TrimPrefix(server.URL, "http://")
	for _, p := range programs {
		image := build(t, p, "binary", 0o755, time.Now())
		file := filepath.Join(t.TempDir(), "images", p.name+".tar")
		if err := publishImage(image, tag(t, p.name+":v1"), "", file); err != nil {
			t.Fatal(err)
		}
		pushed := tag(t, address+"/"+p.name+":v1")
		if err := publishImage(image, pushed, address, ""); err != nil {
			t.Fatal(err)
		}

		archived, err := tarball.ImageFromPath(file, nil)
		if err != nil {
			t.Fatal(err)
		}
		check(t, p, archived)
		manifest, err := tarball.LoadManifest(func() (io.ReadCloser, error) { return os.Open(file) })
		if err != nil || !slices.Equal(manifest[0].RepoTags, []string{p.name + ":v1"}) {
			t.Errorf("%s: the names in the archive are %v (%v)", p.name, manifest, err)
		}
		pulled, err := remote.Image(pushed)
		if err != nil {
			t.Fatal(err)
		}
		check(t, p, pulled)
		if got, want := digest(t, pulled), digest(t, image); got != want {
			t.Errorf("%s: digest %s in the registry, %s printed", p.name, got, want)
		}
	}
}

// check checks the configuration and the files of an image.
func check(t *testing.T, p program, image v1.Image) {
	t.Helper()
	config, err := image.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	workingDir, want := "", []string{p.name + " 755 0:0 binary", "LICENSES 644 0:0 licenses", "etc/ 755 0:0 ", "etc/ssl/ 755 0:0 ", "etc/ssl/certs/ 755 0:0 ", caFile + " 644 0:0 " + string(caCertificates())}
	if p.dataDir != "" {
		workingDir = "/var/lib/borough"
		want = append(want, "var/ 755 0:0 ", "var/lib/ 755 0:0 ", "var/lib/borough/ 700 65532:65532 ")
	}
	got := fmt.Sprintf("%s/%s user=%s entrypoint=%s workingdir=%s", config.OS, config.Architecture, config.Config.User, config.Config.Entrypoint, config.Config.WorkingDir)
	if want := fmt.Sprintf("linux/arm64 user=65532:65532 entrypoint=[/%s] workingdir=%s", p.name, workingDir); got != want {
		t.Errorf("configuration %s, want %s", got, want)
	}
	layers, err := image.Layers()
	if err != nil || len(layers) != 1 {
		t.Fatalf("%s: layers %v (%v)", p.name, layers, err)
	}
	content, err := layers[0].Uncompressed()
	if err != nil {
		t.Fatal(err)
	}
	defer content.Close()
	var files []string
	for r := tar.NewReader(content); ; {
		header, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, fmt.Sprintf("%s %o %d:%d %s", header.Name, header.Mode, header.Uid, header.Gid, content))
	}
	if !slices.Equal(files, want) {
		t.Errorf("files %q, want %q", files, want)
	}
}

// TestCACertificates parses the CAs of the images.
func TestCACertificates(t *testing.T) {
	content, all := caCertificates(), 0
	for range bundle.Roots() {
		all++
	}
	n := 0
	for block, rest := pem.Decode(content); block != nil; block, rest = pem.Decode(rest) {
		if _, err := x509.ParseCertificate(block.Bytes); err != nil {
			t.Error(err)
		}
		n++
	}
	if n < 100 || n > all {
		t.Errorf("%d CAs of %d", n, all)
	}
}

// build returns the image of a program with a binary in a new directory.
func build(t *testing.T, p program, content string, mode os.FileMode, modified time.Time) v1.Image {
	t.Helper()
	dir := t.TempDir()
	file := filepath.Join(dir, p.name)
	if err := errors.Join(os.WriteFile(file, []byte(content), mode), os.Chtimes(file, modified, modified),
		os.WriteFile(filepath.Join(dir, licensesFile), []byte("licenses"), 0o644)); err != nil {
		t.Fatal(err)
	}
	image, err := p.image(dir, "arm64")
	if err != nil {
		t.Fatal(err)
	}
	return image
}

func tag(t *testing.T, ref string) name.Tag {
	t.Helper()
	tag, err := name.NewTag(ref)
	if err != nil {
		t.Fatal(err)
	}
	return tag
}

func digest(t *testing.T, image v1.Image) v1.Hash {
	t.Helper()
	digest, err := image.Digest()
	if err != nil {
		t.Fatal(err)
	}
	return digest
}
