// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package standalone

import (
	"context"
	"crypto/x509"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/borough-io/borough/pkg/authorization/rbac"
	"github.com/borough-io/borough/pkg/certificates"
)

var hosts = []string{"127.0.0.1", "localhost"}

func mustEnsure(t *testing.T, dir string, hosts []string) *PKI {
	t.Helper()
	pki, err := EnsurePKI(dir, hosts)
	if err != nil {
		t.Fatalf("EnsurePKI: %v", err)
	}
	return pki
}

func contents(t *testing.T, dir string) map[string]string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{}
	for _, entry := range entries {
		content, err := os.ReadFile(filepath.Join(dir, entry.Name()))
		if err != nil {
			t.Fatal(err)
		}
		files[entry.Name()] = string(content)
	}
	return files
}

func TestPKIIsCreatedOnce(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "pki")
	pki := mustEnsure(t, dir, hosts)
	made := contents(t, dir)

	roots := x509.NewCertPool()
	roots.AddCert(pki.ca.Cert)
	for _, tc := range []struct {
		pair  certificates.Pair
		usage x509.ExtKeyUsage
		host  string
	}{
		{pki.admin, x509.ExtKeyUsageClientAuth, ""},
		{pki.controller, x509.ExtKeyUsageClientAuth, ""},
		{pki.server, x509.ExtKeyUsageServerAuth, "127.0.0.1"},
		{pki.server, x509.ExtKeyUsageServerAuth, "localhost"},
	} {
		_, err := tc.pair.Cert.Verify(x509.VerifyOptions{Roots: roots, DNSName: tc.host, KeyUsages: []x509.ExtKeyUsage{tc.usage}})
		if err != nil {
			t.Errorf("verify %s for %q: %v", tc.pair.Cert.Subject, tc.host, err)
		}
	}
	if got := pki.admin.Cert.Subject.Organization; !slices.Equal(got, []string{user.SystemPrivilegedGroup}) {
		t.Errorf("groups of the admin: %v", got)
	}
	if got := pki.controller.Cert.Subject.Organization; len(got) != 0 {
		t.Errorf("groups of the controller: %v", got)
	}
	for name := range made {
		info, err := os.Stat(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasSuffix(name, ".key") && info.Mode().Perm() != 0o600 {
			t.Errorf("mode of %s: %v", name, info.Mode())
		}
	}

	mustEnsure(t, dir, hosts)
	for name, content := range contents(t, dir) {
		if made[name] != content {
			t.Errorf("%s was created again", name)
		}
	}

	mustEnsure(t, dir, append(hosts, "borough.example"))
	for name, content := range contents(t, dir) {
		if changed := made[name] != content; changed != strings.HasPrefix(name, "apiserver.") {
			t.Errorf("a new host: %s changed: %v", name, changed)
		}
	}
}

// TestPKIAfterACrash interrupts the first start after each file that it writes: the
// next start creates the rest.
func TestPKIAfterACrash(t *testing.T) {
	order := []string{"ca.key", "ca.crt", "admin.key", "admin.crt", "controller.key", "controller.crt", "apiserver.key", "apiserver.crt"}
	for n := range order {
		dir := filepath.Join(t.TempDir(), "pki")
		mustEnsure(t, dir, hosts)
		for _, name := range order[n:] {
			if err := os.Remove(filepath.Join(dir, name)); err != nil {
				t.Fatal(err)
			}
		}
		mustEnsure(t, dir, hosts)
	}
}

// TestPKIAtAnotherTime starts servers whose clocks disagree on one directory.
func TestPKIAtAnotherTime(t *testing.T) {
	now := time.Now()
	const day = 24 * time.Hour
	for name, tc := range map[string]struct {
		ca, leaves, now time.Time
		want            []string // of the error
	}{
		"all at once":                 {now, now, now, nil},
		"within the skew":             {now, now, now.Add(-certificates.ClockSkew / 2), nil},
		"later":                       {now, now.Add(day), now.Add(2 * day), nil},
		"leaves not valid yet":        {now, now.Add(2 * day), now.Add(day), nil},
		"CA and leaves not valid yet": {now, now, now.Add(-day), []string{"is not valid before " + now.Add(-certificates.ClockSkew).UTC().Format(time.RFC3339), "set the clock"}},
		"CA expired":                  {now, now, now.Add(11 * 365 * day), []string{"expired at ", "set the clock"}},
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "pki")
			if _, err := ensurePKI(dir, hosts, tc.ca); err != nil {
				t.Fatal(err)
			}
			for _, leaf := range []string{"admin", "controller", "apiserver"} {
				if err := os.Remove(filepath.Join(dir, leaf+".crt")); err != nil {
					t.Fatal(err)
				}
			}
			if _, err := ensurePKI(dir, hosts, tc.leaves); err != nil {
				t.Fatal(err)
			}
			before := contents(t, dir)

			pki, err := ensurePKI(dir, hosts, tc.now)
			if tc.want != nil {
				if err == nil {
					t.Fatal("no error")
				}
				for _, want := range append(tc.want, filepath.Join(dir, "ca.crt"), tc.now.UTC().Format(time.RFC3339), "delete "+dir) {
					if !strings.Contains(err.Error(), want) {
						t.Errorf("the error lacks %q: %v", want, err)
					}
				}
				if after := contents(t, dir); !maps.Equal(before, after) {
					t.Error("files have changed")
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if after := contents(t, dir); before["ca.crt"] != after["ca.crt"] || before["ca.key"] != after["ca.key"] {
				t.Error("the CA has changed")
			}
			roots := x509.NewCertPool()
			roots.AddCert(pki.ca.Cert)
			for _, p := range []certificates.Pair{pki.admin, pki.controller, pki.server} {
				if _, err := p.Cert.Verify(x509.VerifyOptions{Roots: roots, CurrentTime: tc.now, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageAny}}); err != nil {
					t.Errorf("%s: %v", p.Cert.Subject, err)
				}
			}
		})
	}
}

// TestPKIReplacesUnusable replaces well-formed certificates that were created for
// another purpose.
func TestPKIReplacesUnusable(t *testing.T) {
	other := mustEnsure(t, filepath.Join(t.TempDir(), "pki"), hosts)
	for name, replace := range map[string]func(p *PKI) error{
		"signed by another CA": func(p *PKI) error {
			certPEM, keyPEM, err := other.server.EncodePEM()
			return errors.Join(err,
				os.WriteFile(p.ServingCertFile(), certPEM, 0o644),
				os.WriteFile(p.ServingKeyFile(), keyPEM, 0o600))
		},
		"for another use": func(p *PKI) error {
			template := certificates.Server("borough-apiserver", hosts)
			template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
			if err := os.Remove(p.ServingCertFile()); err != nil {
				return err
			}
			_, err := p.dir.Ensure("apiserver", p.ca, template)
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "pki")
			if err := replace(mustEnsure(t, dir, hosts)); err != nil {
				t.Fatal(err)
			}
			before := contents(t, dir)
			pki := mustEnsure(t, dir, hosts)
			roots := x509.NewCertPool()
			roots.AddCert(pki.ca.Cert)
			if _, err := pki.server.Cert.Verify(x509.VerifyOptions{Roots: roots, DNSName: hosts[0]}); err != nil {
				t.Error(err)
			}
			for name, content := range contents(t, dir) {
				if changed := before[name] != content; changed != strings.HasPrefix(name, "apiserver.") {
					t.Errorf("%s changed: %v", name, changed)
				}
			}
		})
	}
}

func TestPKIRejectsDamagedFiles(t *testing.T) {
	write := func(content string) func(string) error {
		return func(path string) error { return os.WriteFile(path, []byte(content), 0o600) }
	}
	halve := func(path string) error {
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		return os.WriteFile(path, content[:len(content)/2], 0o600)
	}
	for name, tc := range map[string]struct {
		file   string
		damage func(string) error
	}{
		"half-written CA":          {"ca.crt", halve},
		"half-written key":         {"ca.key", halve},
		"half-written certificate": {"apiserver.crt", halve},
		"empty certificate":        {"admin.crt", write("")},
		"text":                     {"controller.key", write("hello")},
		"key missing":              {"admin.key", os.Remove},
		"CA missing":               {"ca.crt", os.Remove},
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "pki")
			mustEnsure(t, dir, hosts)
			path := filepath.Join(dir, tc.file)
			if err := tc.damage(path); err != nil {
				t.Fatal(err)
			}
			damaged := contents(t, dir)

			_, err := EnsurePKI(dir, hosts)
			if err == nil {
				t.Fatal("no error")
			}
			if !strings.Contains(err.Error(), path) || strings.Contains(err.Error(), "\n") {
				t.Errorf("the error is not one line that names %s: %v", path, err)
			}
			for name, content := range contents(t, dir) {
				if damaged[name] != content {
					t.Errorf("%s was overwritten", name)
				}
			}
			if strings.HasPrefix(tc.file, "ca.") {
				return
			}
			// The error says to delete only the certificate.
			certFile := strings.TrimSuffix(path, filepath.Ext(path)) + ".crt"
			if want := "delete " + certFile + " "; !strings.Contains(err.Error(), want) {
				t.Fatalf("the error lacks %q: %v", want, err)
			}
			if err := os.Remove(certFile); err != nil {
				t.Fatal(err)
			}
			mustEnsure(t, dir, hosts)
			if contents(t, dir)["ca.crt"] != damaged["ca.crt"] {
				t.Error("the CA has changed")
			}
		})
	}
}

// TestPKIBeforeTheClockIsSet starts a server on a machine that has booted without the time.
func TestPKIBeforeTheClockIsSet(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "pki")
	if _, err := ensurePKI(dir, hosts, time.Unix(0, 0)); err == nil || !strings.Contains(err.Error(), "set the clock") {
		t.Errorf("got %v, want an error", err)
	}
	if got := contents(t, dir); len(got) > 0 {
		t.Errorf("files were created: %v", slices.Sorted(maps.Keys(got)))
	}
}

func TestKubeconfigs(t *testing.T) {
	dir := t.TempDir()
	pki := mustEnsure(t, filepath.Join(dir, "pki"), hosts)
	admin, controller := filepath.Join(dir, "admin.kubeconfig"), filepath.Join(dir, "controller.kubeconfig")
	// A file that was truncated by a crash is replaced, also its mode.
	if err := os.WriteFile(admin, []byte("apiVersion: v"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := (Kubeconfigs{Server: "https://127.0.0.1:6443"}).Write(pki, admin, controller); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{admin, controller} {
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		if info.Mode().Perm() != 0o600 {
			t.Errorf("mode of %s: %v", path, info.Mode())
		}
		config, err := clientcmd.BuildConfigFromFlags("", path)
		if err != nil {
			t.Fatalf("read %s: %v", path, err)
		}
		if config.Host != "https://127.0.0.1:6443" || len(config.CertData) == 0 || len(config.CAData) == 0 {
			t.Errorf("%s is not complete: %v", path, config)
		}
	}
	// A start with the same certificates does not replace them: systemd hides a file from the
	// controller until it is replaced.
	before, err := os.Stat(admin)
	if err != nil {
		t.Fatal(err)
	}
	if err := (Kubeconfigs{Server: "https://127.0.0.1:6443"}).Write(pki, admin, controller); err != nil {
		t.Fatal(err)
	}
	if after, err := os.Stat(admin); err != nil || !os.SameFile(before, after) {
		t.Errorf("the same kubeconfig was written again: %v", err)
	}
}

// TestAuthorizer checks what the policy does not decide.
func TestAuthorizer(t *testing.T) {
	index := rbac.NewIndex(nil)
	synced, cancel := context.WithCancel(t.Context())
	cancel() // the policy is never read, and requests do not wait for it
	authz, err := NewAuthorizer([]string{"/readyz", "/livez/*"}, rbac.NewAuthorizer(index))
	if err != nil {
		t.Fatal(err)
	}
	admin := &user.DefaultInfo{Name: "admin", Groups: []string{user.SystemPrivilegedGroup}}
	anonymous := &user.DefaultInfo{Name: user.Anonymous, Groups: []string{user.AllUnauthenticated}}
	for _, tc := range []struct {
		user    user.Info
		path    string
		allowed bool
	}{
		{admin, "/metrics", true},
		{anonymous, "/readyz", true},
		{anonymous, "/livez/ping", true},
		{anonymous, "/apis", false},
	} {
		decision, _, err := authz.Authorize(synced, authorizer.AttributesRecord{User: tc.user, Verb: "get", Path: tc.path})
		if allowed := decision == authorizer.DecisionAllow; allowed != tc.allowed {
			t.Errorf("%s gets %s: allowed is %v, want %v", tc.user.GetName(), tc.path, allowed, tc.allowed)
		}
		if !tc.allowed && (err == nil || !strings.Contains(err.Error(), "the RBAC objects have not been read yet")) {
			t.Errorf("%s gets %s: without a policy: %v", tc.user.GetName(), tc.path, err)
		}
	}
}
