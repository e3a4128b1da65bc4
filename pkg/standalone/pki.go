// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

// Package standalone gives a server without a cluster what it would otherwise get
// from one: certificates, identities with their kubeconfigs, and how it authenticates
// and authorizes users.
package standalone

import (
	"crypto/x509/pkix"
	"time"

	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/borough-io/borough/pkg/authorization/bootstrap"
	"github.com/borough-io/borough/pkg/certificates"
)

const (
	// adminUser is the user name in the certificate of the admin. Its group is
	// system:masters, which may do everything.
	adminUser = "borough-admin"

	// lifetime is long, because it protects nothing: a user who can read the
	// directory has all rights, and a server whose certificates expire stops.
	lifetime = 10 * 365 * 24 * time.Hour

	// caName is the name of the files of the CA.
	caName = "ca"
)

// PKI is the CA of the server and the certificates that it has signed, kept in a
// directory and valid for ten years.
type PKI struct {
	dir                           *certificates.Directory
	ca, admin, controller, server certificates.Pair
}

// CAFile is the path of the certificate of the CA.
func (p *PKI) CAFile() string { return p.dir.CertFile(caName) }

// Expires is the time when the CA, and every certificate that it has signed, expires.
func (p *PKI) Expires() time.Time { return p.ca.Cert.NotAfter }

// ServingCertFile is the path of the serving certificate.
func (p *PKI) ServingCertFile() string { return p.dir.CertFile("apiserver") }

// ServingKeyFile is the path of the key of the serving certificate.
func (p *PKI) ServingKeyFile() string { return p.dir.KeyFile("apiserver") }

// ReadCA returns the CA of the PKI in dir, which must exist.
func ReadCA(dir string, now time.Time) (certificates.Pair, error) {
	return certificates.ReadCA(dir, caName, now)
}

// EnsurePKI reads the PKI in dir and creates what is missing. It replaces a
// certificate that the server or its clients cannot use: one that is not valid
// now, was signed by another CA or for another use, or does not cover hosts,
// which are DNS names and IP addresses. It never replaces a CA, because
// kubeconfigs trust it: if the CA is not valid now or is missing, or a file cannot be
// read, the error names the file and how to continue.
func EnsurePKI(dir string, hosts []string) (*PKI, error) {
	return ensurePKI(dir, hosts, time.Now())
}

func ensurePKI(path string, hosts []string, now time.Time) (*PKI, error) {
	dir, err := certificates.NewDirectory(path, now)
	if err != nil {
		return nil, err
	}
	p := &PKI{dir: dir}
	if p.ca, err = dir.EnsureCA(caName, lifetime); err != nil {
		return nil, err
	}
	admin := pkix.Name{CommonName: adminUser, Organization: []string{user.SystemPrivilegedGroup}}
	if p.admin, err = dir.Ensure("admin", p.ca, certificates.Client(admin)); err != nil {
		return nil, err
	}
	controller := pkix.Name{CommonName: bootstrap.ControllerUser}
	if p.controller, err = dir.Ensure("controller", p.ca, certificates.Client(controller)); err != nil {
		return nil, err
	}
	if p.server, err = dir.Ensure("apiserver", p.ca, certificates.Server("borough-apiserver", hosts)); err != nil {
		return nil, err
	}
	return p, nil
}
