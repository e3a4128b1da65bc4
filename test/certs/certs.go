// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

// Package certs signs certificates for tests, also such that package certificates
// does not create.
package certs

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"testing"
)

// Sign creates a key, and signs its certificate with the key of the CA or, if ca is
// nil, with the new key.
func Sign(t testing.TB, template, ca *x509.Certificate, caKey crypto.PrivateKey) (*x509.Certificate, *ecdsa.PrivateKey) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	if ca == nil {
		ca, caKey = template, key
	}
	raw, err := x509.CreateCertificate(rand.Reader, template, ca, key.Public(), caKey)
	if err != nil {
		t.Fatal(err)
	}
	signed, err := x509.ParseCertificate(raw)
	if err != nil {
		t.Fatal(err)
	}
	return signed, key
}
