// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/pem"
	"runtime/debug"
	"slices"

	"golang.org/x/crypto/x509roots/fallback/bundle"
)

const (
	// caFile is where Go looks for the CAs of the system.
	caFile = "etc/ssl/certs/ca-certificates.crt"
	// caModule is the module that has them, which are those that Mozilla trusts.
	caModule = "golang.org/x/crypto/x509roots/fallback"
)

// caCertificates returns the CAs of an image: the programs connect to webhooks, issuers of
// tokens and sources without a CA in their configuration. A CA with a condition that a file
// cannot express is left out.
func caCertificates() []byte {
	var file bytes.Buffer
	for root := range bundle.Roots() {
		if root.Constraint == nil {
			_ = pem.Encode(&file, &pem.Block{Type: "CERTIFICATE", Bytes: root.Certificate}) // to a buffer
		}
	}
	return file.Bytes()
}

// caVersion returns the version of the module, or "" if it is not known.
func caVersion() string {
	info, _ := debug.ReadBuildInfo()
	if info == nil {
		return ""
	}
	i := slices.IndexFunc(info.Deps, func(m *debug.Module) bool { return m.Path == caModule })
	if i < 0 {
		return ""
	}
	_, version := replaced(info.Deps[i])
	return version
}
