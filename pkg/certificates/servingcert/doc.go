// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

// Package servingcert renews the serving certificate of the servers behind a cluster.
// The servers share the certificate in a Secret, which the manifests create empty.
// kube-apiserver verifies it with the CAs in caBundle of the APIService, which only
// the servers write.
//
// Each certificate has its own CA, whose key is discarded. The server that creates a
// certificate first adds the CA to the caBundle, and then writes the certificate into
// the Secret. Both writes name the version that they are based on, so that of several
// servers one wins, and the others adopt what is in the Secret.
//
// So a certificate in the Secret counts only if kube-apiserver would accept it: its CA
// is in the caBundle, it verifies now for every name of the Service, and neither it
// nor its CA is valid for longer than configured. Everything else in the Secret is
// treated as absent, and is replaced by what a server serves or, if that does not
// verify either, by a new certificate. No CA gets from the Secret into the caBundle.
// If the caBundle is changed, a server restores the CAs of what it serves; one that
// has just started knows only the caBundle.
//
// The caBundle has the CAs of the certificate in the Secret and of the next one. A CA
// that is no longer, or not yet, that of a certificate in the Secret stays for a grace
// period: another server may still serve with the previous certificate, or is about to
// write a new one. There are never more than three CAs.
package servingcert
