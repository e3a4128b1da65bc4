// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

// Package standalone gives a server that has no host cluster what it would get
// from one: certificates, identities, the kubeconfigs that carry them, and a
// policy that says what each identity may do.
package standalone

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"io/fs"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"slices"
	"time"

	"k8s.io/apiserver/pkg/authentication/user"
	certutil "k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/keyutil"
)

const (
	// AdminUser is the name in the admin's certificate. Its group is
	// system:masters, which may do all.
	AdminUser = "borough-admin"
	// ControllerUser is the name in the controller's certificate. ControllerRules
	// says what it may do.
	ControllerUser = "system:borough-controller-manager"

	// clockSkew is how far behind the clock of a client may be.
	clockSkew = 5 * time.Minute
)

// PKI is a certificate authority of the server's own and what it has signed,
// kept in a directory. All of it is valid for ten years: whoever can read the
// directory holds all rights anyway, and a shorter life would only stop the
// server one day.
type PKI struct {
	dir        string
	ca         pair
	admin      pair
	controller pair
	server     pair
}

// pair is a certificate and its key, as objects and as PEM.
type pair struct {
	cert            *x509.Certificate
	key             crypto.Signer
	certPEM, keyPEM []byte
}

// CAFile is the path of the certificate of the CA.
func (p *PKI) CAFile() string { return p.certFile("ca") }

// ServingCertFile and ServingKeyFile are what the server serves with.
func (p *PKI) ServingCertFile() string { return p.certFile("apiserver") }

// ServingKeyFile is the path of the key to ServingCertFile.
func (p *PKI) ServingKeyFile() string { return p.keyFile("apiserver") }

func (p *PKI) certFile(name string) string { return filepath.Join(p.dir, name+".crt") }
func (p *PKI) keyFile(name string) string  { return filepath.Join(p.dir, name+".key") }

// EnsurePKI reads the PKI in dir and makes what is not there yet. The serving
// certificate is made anew when it does not cover hosts, which are DNS names
// and IP addresses. A file that is there but can't be used is an error that
// names it: nothing is overwritten that somebody may trust.
func EnsurePKI(dir string, hosts []string) (*PKI, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("make the directory for certificates: %w", err)
	}
	p := &PKI{dir: dir}
	var err error
	if p.ca, err = p.ensureCA(); err != nil {
		return nil, err
	}
	admin := pkix.Name{CommonName: AdminUser, Organization: []string{user.SystemPrivilegedGroup}}
	if p.admin, err = p.ensure("admin", client(admin)); err != nil {
		return nil, err
	}
	if p.controller, err = p.ensure("controller", client(pkix.Name{CommonName: ControllerUser})); err != nil {
		return nil, err
	}
	if p.server, err = p.ensure("apiserver", server(hosts)); err != nil {
		return nil, err
	}
	return p, nil
}

func client(subject pkix.Name) *x509.Certificate {
	return &x509.Certificate{
		Subject:     subject,
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}
}

func server(hosts []string) *x509.Certificate {
	template := &x509.Certificate{
		Subject:     pkix.Name{CommonName: "borough-apiserver"},
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	for _, host := range hosts {
		if ip := net.ParseIP(host); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
		} else {
			template.DNSNames = append(template.DNSNames, host)
		}
	}
	return template
}

func (p *PKI) ensureCA() (pair, error) {
	ca, err := p.read("ca")
	switch {
	case err == nil:
		if !ca.cert.IsCA {
			return pair{}, fmt.Errorf("read the CA: %s is not the certificate of a CA", p.certFile("ca"))
		}
		if time.Now().After(ca.cert.NotAfter) {
			return pair{}, fmt.Errorf("read the CA: %s expired on %s; delete %s to have a new one made", p.certFile("ca"), ca.cert.NotAfter.Format(time.DateOnly), p.dir)
		}
		return ca, nil
	case !errors.Is(err, fs.ErrNotExist):
		return pair{}, err
	}

	key, err := newKey()
	if err != nil {
		return pair{}, err
	}
	cert, err := certutil.NewSelfSignedCACert(certutil.Config{
		CommonName: fmt.Sprintf("borough-ca@%d", time.Now().Unix()),
		NotBefore:  time.Now().Add(-clockSkew),
	}, key)
	if err != nil {
		return pair{}, fmt.Errorf("make the CA: %w", err)
	}
	return p.write("ca", cert.Raw, key)
}

// ensure returns the pair of that name when it is what template asks for, and
// makes it otherwise.
func (p *PKI) ensure(name string, template *x509.Certificate) (pair, error) {
	have, err := p.read(name)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return pair{}, err
	}
	if err == nil && p.serves(have.cert, template) {
		return have, nil
	}

	key, err := newKey()
	if err != nil {
		return pair{}, err
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		return pair{}, fmt.Errorf("choose a serial number: %w", err)
	}
	template.SerialNumber = serial
	template.NotBefore = time.Now().Add(-clockSkew)
	template.NotAfter = p.ca.cert.NotAfter
	raw, err := x509.CreateCertificate(rand.Reader, template, p.ca.cert, key.Public(), p.ca.key)
	if err != nil {
		return pair{}, fmt.Errorf("sign the certificate %s: %w", name, err)
	}
	return p.write(name, raw, key)
}

// serves tells whether cert is signed by the CA, valid, and covers what
// template asks for.
func (p *PKI) serves(cert, template *x509.Certificate) bool {
	if cert.CheckSignatureFrom(p.ca.cert) != nil || time.Now().After(cert.NotAfter) ||
		cert.Subject.String() != template.Subject.String() {
		return false
	}
	for _, ip := range template.IPAddresses {
		if !slices.ContainsFunc(cert.IPAddresses, ip.Equal) {
			return false
		}
	}
	for _, name := range template.DNSNames {
		if !slices.Contains(cert.DNSNames, name) {
			return false
		}
	}
	return true
}

func newKey() (*ecdsa.PrivateKey, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("generate a key: %w", err)
	}
	return key, nil
}

// read returns fs.ErrNotExist when there is no certificate of that name. The
// certificate is written last, so a key alone is what a start left that was
// cut short, and is written again.
func (p *PKI) read(name string) (pair, error) {
	certPEM, err := os.ReadFile(p.certFile(name))
	if err != nil {
		return pair{}, fmt.Errorf("read a certificate: %w", err)
	}
	keyPEM, err := os.ReadFile(p.keyFile(name))
	if errors.Is(err, fs.ErrNotExist) {
		return pair{}, fmt.Errorf("read a key: %s is missing, but its certificate is there; restore it, or delete %s to have new ones made", p.keyFile(name), p.dir)
	}
	if err != nil {
		return pair{}, fmt.Errorf("read a key: %w", err)
	}

	broken := func(file string, err error) error {
		return fmt.Errorf("read %s: %w; restore it, or delete %s to have new ones made", file, err, p.dir)
	}
	certs, err := certutil.ParseCertsPEM(certPEM)
	if err != nil {
		return pair{}, broken(p.certFile(name), err)
	}
	parsed, err := keyutil.ParsePrivateKeyPEM(keyPEM)
	if err != nil {
		return pair{}, broken(p.keyFile(name), err)
	}
	key, ok := parsed.(*ecdsa.PrivateKey)
	if !ok || !key.PublicKey.Equal(certs[0].PublicKey) {
		return pair{}, broken(p.keyFile(name), errors.New("not the key of its certificate"))
	}
	return pair{cert: certs[0], key: key, certPEM: certPEM, keyPEM: keyPEM}, nil
}

func (p *PKI) write(name string, rawCert []byte, key *ecdsa.PrivateKey) (pair, error) {
	cert, err := x509.ParseCertificate(rawCert)
	if err != nil {
		return pair{}, fmt.Errorf("parse the new certificate %s: %w", name, err)
	}
	certPEM, err := certutil.EncodeCertificates(cert)
	if err != nil {
		return pair{}, fmt.Errorf("encode the new certificate %s: %w", name, err)
	}
	keyPEM, err := keyutil.MarshalPrivateKeyToPEM(key)
	if err != nil {
		return pair{}, fmt.Errorf("encode the new key %s: %w", name, err)
	}
	if err := writeFile(p.keyFile(name), keyPEM, 0o600); err != nil {
		return pair{}, err
	}
	if err := writeFile(p.certFile(name), certPEM, 0o644); err != nil {
		return pair{}, err
	}
	return pair{cert: cert, key: key, certPEM: certPEM, keyPEM: keyPEM}, nil
}

// writeFile replaces a file as a whole: a reader, or a start after a crash,
// sees the old content or the new.
func writeFile(path string, content []byte, mode fs.FileMode) (err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("write %s: %w", path, err)
		}
	}()
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name()) // fails once it is renamed, as it should
	_, err = f.Write(content)
	err = errors.Join(err, f.Chmod(mode), f.Sync(), f.Close())
	if err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}
