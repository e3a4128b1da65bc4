// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"debug/buildinfo"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"strings"

	"github.com/google/go-containerregistry/pkg/v1"
)

// A document is a software bill of materials in the format SPDX 2.3.
type document struct {
	SPDXVersion   string         `json:"spdxVersion"`
	DataLicense   string         `json:"dataLicense"`
	ID            string         `json:"SPDXID"`
	Name          string         `json:"name"`
	Namespace     string         `json:"documentNamespace"`
	CreationInfo  creationInfo   `json:"creationInfo"`
	Packages      []sbomPackage  `json:"packages"`
	Relationships []relationship `json:"relationships"`
}

type creationInfo struct {
	Created  string   `json:"created"`
	Creators []string `json:"creators"`
}

type sbomPackage struct {
	ID               string        `json:"SPDXID"`
	Name             string        `json:"name"`
	Version          string        `json:"versionInfo"`
	Purpose          string        `json:"primaryPackagePurpose"`
	DownloadLocation string        `json:"downloadLocation"`
	FilesAnalyzed    bool          `json:"filesAnalyzed"`
	LicenseConcluded string        `json:"licenseConcluded"`
	LicenseDeclared  string        `json:"licenseDeclared"`
	CopyrightText    string        `json:"copyrightText"`
	Checksums        []checksum    `json:"checksums,omitempty"`
	ExternalRefs     []externalRef `json:"externalRefs"`
}

type checksum struct {
	Algorithm string `json:"algorithm"`
	Value     string `json:"checksumValue"`
}

type externalRef struct {
	Category string `json:"referenceCategory"`
	Type     string `json:"referenceType"`
	Locator  string `json:"referenceLocator"`
}

type relationship struct {
	Element string `json:"spdxElementId"`
	Type    string `json:"relationshipType"`
	Related string `json:"relatedSpdxElement"`
}

// sbom describes an image of a program: its binary, the modules that the linker has recorded
// in the binary, and the module that has the CAs.
func sbom(p program, bin, arch, version, created string, image v1.Image) (*document, error) {
	info, err := buildinfo.ReadFile(filepath.Join(bin, p.name))
	if err != nil {
		return nil, err
	}
	digest, err := image.Digest()
	if err != nil {
		return nil, err
	}
	d := &document{
		SPDXVersion: "SPDX-2.3", DataLicense: "CC0-1.0", ID: "SPDXRef-DOCUMENT",
		Name:         fmt.Sprintf("%s %s linux/%s", p.name, version, arch),
		Namespace:    fmt.Sprintf("%s/spdx/%s/%s", labels["org.opencontainers.image.source"], p.name, digest.Hex),
		CreationInfo: creationInfo{Created: created, Creators: []string{"Organization: The Borough Authors", "Tool: hack/images"}},
	}
	root := newPackage("SPDXRef-Image", p.name, digest.String(), "CONTAINER",
		fmt.Sprintf("pkg:oci/%s@%s?arch=%s&tag=%s", p.name, strings.Replace(digest.String(), ":", "%3A", 1), arch, version))
	root.Checksums = []checksum{{"SHA256", digest.Hex}}
	main := module(info.Main.Path, version)
	main.Purpose = "APPLICATION"
	main.LicenseConcluded, main.LicenseDeclared = labels["org.opencontainers.image.licenses"], labels["org.opencontainers.image.licenses"]
	d.Packages = append(d.Packages, root, main, module("stdlib", strings.TrimPrefix(info.GoVersion, "go")))
	for _, dependency := range info.Deps {
		d.Packages = append(d.Packages, module(replaced(dependency)))
	}
	d.Relationships = []relationship{{d.ID, "DESCRIBES", root.ID}, {root.ID, "CONTAINS", main.ID}}
	for _, dependency := range d.Packages[2:] {
		d.Relationships = append(d.Relationships, relationship{main.ID, "DEPENDS_ON", dependency.ID})
	}
	cas := module(caModule, caVersion())
	cas.ID, cas.Purpose = "SPDXRef-CACertificates", "FILE"
	d.Packages = append(d.Packages, cas)
	d.Relationships = append(d.Relationships, relationship{root.ID, "CONTAINS", cas.ID})
	return d, nil
}

// replaced returns the module that a dependency is built from.
func replaced(m *debug.Module) (path, version string) {
	if m.Replace != nil {
		m = m.Replace
	}
	return m.Path, m.Version
}

// notInID are the characters that an identifier in SPDX cannot have.
var notInID = regexp.MustCompile(`[^a-zA-Z0-9.-]`)

func module(path, version string) sbomPackage {
	id := "SPDXRef-Module-" + notInID.ReplaceAllString(path, "-")
	return newPackage(id, path, version, "LIBRARY", fmt.Sprintf("pkg:golang/%s@%s", path, strings.ReplaceAll(version, "+", "%2B")))
}

func newPackage(id, name, version, purpose, purl string) sbomPackage {
	const unknown = "NOASSERTION"
	return sbomPackage{
		ID: id, Name: name, Version: version, Purpose: purpose, DownloadLocation: unknown,
		LicenseConcluded: unknown, LicenseDeclared: unknown, CopyrightText: unknown,
		ExternalRefs: []externalRef{{"PACKAGE-MANAGER", "purl", purl}},
	}
}

// write writes the document to a file.
func (d *document) write(file string) error {
	text, err := json.MarshalIndent(d, "", "  ")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return err
	}
	return os.WriteFile(file, append(text, '\n'), 0o644)
}
