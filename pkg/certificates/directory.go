// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package certificates

import (
	"bytes"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	certutil "k8s.io/client-go/util/cert"
)

// Directory keeps pairs as NAME.crt and NAME.key. A file that exists but is damaged
// is an error that names it, and what to delete; the file is not overwritten, because
// that would hide what has damaged it.
type Directory struct {
	path string
	now  time.Time
}

// earliest is a time that every clock that is right has passed. A CA that is created by a
// clock that was not set yet has expired when it is.
var earliest = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// NewDirectory returns the directory at path, which it creates with mode 0700 if
// it does not exist. It judges and creates certificates by the time now.
func NewDirectory(path string, now time.Time) (*Directory, error) {
	if err := os.MkdirAll(path, 0o700); err != nil {
		return nil, fmt.Errorf("create the directory for certificates: %w", err)
	}
	return &Directory{path: path, now: now}, nil
}

// ReadCA returns the CA of that name in the directory at path. It creates nothing.
func ReadCA(path, name string, now time.Time) (Pair, error) {
	return (&Directory{path: path, now: now}).readCA(name)
}

// CertFile returns the path of a certificate.
func (d *Directory) CertFile(name string) string { return filepath.Join(d.path, name+".crt") }

// KeyFile returns the path of a key.
func (d *Directory) KeyFile(name string) string { return filepath.Join(d.path, name+".key") }

// EnsureCA returns the CA of that name, and creates one that is valid for lifetime
// if there are no certificates. A CA that is not valid now, or that is missing, is an
// error: it cannot be replaced without invalidating what clients have copied.
func (d *Directory) EnsureCA(name string, lifetime time.Duration) (Pair, error) {
	ca, err := d.readCA(name)
	if !errors.Is(err, fs.ErrNotExist) {
		return ca, err
	}
	if d.now.Before(earliest) {
		return Pair{}, fmt.Errorf("create a CA: the time of this machine is %s: set the clock", d.now.UTC().Format(time.RFC3339))
	}
	if signed, err := d.anyCertificate(); err != nil {
		return Pair{}, err
	} else if signed != "" {
		return Pair{}, fmt.Errorf("read the CA: %s is missing, but it has signed %s; restore it, or delete %s to create new ones", d.CertFile(name), signed, d.path)
	}
	if ca, err = NewCA(fmt.Sprintf("borough-%s@%d", name, d.now.Unix()), d.now, d.now.Add(lifetime)); err != nil {
		return Pair{}, err
	}
	return ca, d.write(name, ca)
}

// anyCertificate returns the path of a certificate in the directory, or nothing.
func (d *Directory) anyCertificate() (string, error) {
	entries, err := os.ReadDir(d.path)
	if err != nil {
		return "", fmt.Errorf("read the directory for certificates: %w", err)
	}
	for _, entry := range entries {
		if filepath.Ext(entry.Name()) == ".crt" {
			return filepath.Join(d.path, entry.Name()), nil
		}
	}
	return "", nil
}

func (d *Directory) readCA(name string) (Pair, error) {
	ca, err := d.read(name, d.path)
	if err != nil {
		return Pair{}, err
	}
	if err := d.checkCA(ca.Cert); err != nil {
		return Pair{}, fmt.Errorf("read the CA: %s %w", d.CertFile(name), err)
	}
	return ca, nil
}

// checkCA returns the second half of a sentence that begins with the file name.
func (d *Directory) checkCA(ca *x509.Certificate) error {
	now := d.now.UTC().Format(time.RFC3339)
	newOne := fmt.Sprintf("delete %s to create a new one, which invalidates all copies of its kubeconfigs", d.path)
	switch {
	case !ca.IsCA:
		return errors.New("is not the certificate of a CA")
	case d.now.Before(ca.NotBefore):
		return fmt.Errorf("is not valid before %s, and the time of this machine is %s: set the clock if it is wrong; if it was ahead when the CA was created, %s", ca.NotBefore.Format(time.RFC3339), now, newOne)
	case d.now.After(ca.NotAfter):
		return fmt.Errorf("expired at %s, and the time of this machine is %s: set the clock if it is wrong, or %s", ca.NotAfter.Format(time.RFC3339), now, newOne)
	}
	return nil
}

// Ensure returns the pair of that name if the CA has signed it, it is valid now,
// and it has the subject, the names and the usages of the template. Otherwise it
// creates another.
func (d *Directory) Ensure(name string, ca Pair, template *x509.Certificate) (Pair, error) {
	existing, err := d.read(name, d.CertFile(name))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return Pair{}, err
	}
	if err == nil && Covers(existing.Cert, ca.Cert, template, d.now) == nil {
		return existing, nil
	}
	issued, err := ca.Issue(template, d.now, ca.Cert.NotAfter)
	if err != nil {
		return Pair{}, err
	}
	return issued, d.write(name, issued)
}

// read returns fs.ErrNotExist if there is no certificate of that name. The
// certificate is written last, so a key without one is from a start that was
// interrupted, and is written again. If a file is damaged, the error says to delete
// what is to be created again.
func (d *Directory) read(name, replaced string) (Pair, error) {
	certPEM, err := os.ReadFile(d.CertFile(name))
	if err != nil {
		return Pair{}, fmt.Errorf("read a certificate: %w", err)
	}
	keyPEM, err := os.ReadFile(d.KeyFile(name))
	if errors.Is(err, fs.ErrNotExist) {
		return Pair{}, fmt.Errorf("read a key: %s is missing, but its certificate exists; restore it, or delete %s to create another", d.KeyFile(name), replaced)
	}
	if err != nil {
		return Pair{}, fmt.Errorf("read a key: %w", err)
	}

	damaged := func(file string, err error) error {
		return fmt.Errorf("read %s: %w; restore it, or delete %s to create another", file, err, replaced)
	}
	certs, err := certutil.ParseCertsPEM(certPEM)
	if err != nil {
		return Pair{}, damaged(d.CertFile(name), err)
	}
	key, err := parseKey(keyPEM, certs[0])
	if err != nil {
		return Pair{}, damaged(d.KeyFile(name), err)
	}
	return Pair{certs[0], key}, nil
}

// write replaces the pair. It removes the certificate first, so that a start that is
// interrupted does not leave it with the key of another.
func (d *Directory) write(name string, pair Pair) error {
	certPEM, keyPEM, err := pair.EncodePEM()
	if err != nil {
		return err
	}
	if err := os.Remove(d.CertFile(name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("replace a certificate: %w", err)
	}
	if err := WriteFile(d.KeyFile(name), keyPEM, 0o600); err != nil {
		return err
	}
	return WriteFile(d.CertFile(name), certPEM, 0o644)
}

// WriteFile replaces a file atomically, if its content or mode is another: a reader, or a
// start after a crash, sees the old content or the new.
func WriteFile(path string, content []byte, mode fs.FileMode) (err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("write %s: %w", path, err)
		}
	}()
	// A file with the same content is not written, which also works on a full disk.
	if existing, err := os.ReadFile(path); err == nil && bytes.Equal(existing, content) {
		if info, err := os.Stat(path); err == nil && info.Mode().Perm() == mode {
			return nil
		}
	}
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name()) // fails after the rename, as it should
	_, err = f.Write(content)
	err = errors.Join(err, f.Chmod(mode), f.Sync(), f.Close())
	if err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}
