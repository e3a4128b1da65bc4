// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package standalone

import (
	"context"
	"crypto/x509"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/client-go/tools/clientcmd"
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

func TestPKIIsMadeOnceAndKept(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "pki")
	pki := mustEnsure(t, dir, hosts)
	made := contents(t, dir)

	roots := x509.NewCertPool()
	roots.AddCert(pki.ca.cert)
	for _, tc := range []struct {
		pair  pair
		usage x509.ExtKeyUsage
		host  string
	}{
		{pki.admin, x509.ExtKeyUsageClientAuth, ""},
		{pki.controller, x509.ExtKeyUsageClientAuth, ""},
		{pki.server, x509.ExtKeyUsageServerAuth, "127.0.0.1"},
		{pki.server, x509.ExtKeyUsageServerAuth, "localhost"},
	} {
		_, err := tc.pair.cert.Verify(x509.VerifyOptions{Roots: roots, DNSName: tc.host, KeyUsages: []x509.ExtKeyUsage{tc.usage}})
		if err != nil {
			t.Errorf("verify %s for %q: %v", tc.pair.cert.Subject, tc.host, err)
		}
	}
	if got := pki.admin.cert.Subject.Organization; !slices.Equal(got, []string{user.SystemPrivilegedGroup}) {
		t.Errorf("groups of the admin: %v", got)
	}
	if got := pki.controller.cert.Subject.Organization; len(got) != 0 {
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
			t.Errorf("%s was made anew", name)
		}
	}

	mustEnsure(t, dir, append(hosts, "borough.example"))
	for name, content := range contents(t, dir) {
		if changed := made[name] != content; changed != strings.HasPrefix(name, "apiserver.") {
			t.Errorf("a new host: %s changed: %v", name, changed)
		}
	}
}

// TestPKIAfterACrash cuts the first start short after every file it writes: the
// next start completes what is there.
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

func TestPKIRefusesDamagedFiles(t *testing.T) {
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
		})
	}
}

func TestKubeconfigs(t *testing.T) {
	dir := t.TempDir()
	pki := mustEnsure(t, filepath.Join(dir, "pki"), hosts)
	admin, controller := filepath.Join(dir, "admin.kubeconfig"), filepath.Join(dir, "controller.kubeconfig")
	// A file that a crash has cut short is replaced.
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
}

func TestPolicy(t *testing.T) {
	policy, err := NewAuthorizer([]string{"/readyz", "/livez/*"})
	if err != nil {
		t.Fatal(err)
	}
	admin := &user.DefaultInfo{Name: "anybody", Groups: []string{user.SystemPrivilegedGroup}}
	controller := &user.DefaultInfo{Name: ControllerUser, Groups: []string{user.AllAuthenticated}}
	somebody := &user.DefaultInfo{Name: "somebody", Groups: []string{user.AllAuthenticated}}
	anonymous := &user.DefaultInfo{Name: user.Anonymous, Groups: []string{user.AllUnauthenticated}}

	resource := func(u user.Info, verb, group, resource, subresource string) authorizer.AttributesRecord {
		return authorizer.AttributesRecord{User: u, Verb: verb, APIGroup: group, APIVersion: "v1",
			Resource: resource, Subresource: subresource, Namespace: "a", Name: "a", ResourceRequest: true}
	}
	path := func(u user.Info, verb, path string) authorizer.AttributesRecord {
		return authorizer.AttributesRecord{User: u, Verb: verb, Path: path}
	}
	const group = "tenancy.borough.io"
	for _, tc := range []struct {
		attributes authorizer.AttributesRecord
		want       bool
	}{
		{resource(admin, "delete", group, "namespaces", ""), true},
		{path(admin, "get", "/metrics"), true},
		{resource(controller, "watch", group, "namespaces", ""), true},
		{resource(controller, "update", group, "namespaces", "finalize"), true},
		{resource(controller, "update", group, "namespaces", "status"), true},
		{resource(controller, "deletecollection", group, "pods", ""), true},
		{resource(controller, "list", group, "limitranges", ""), true},
		{path(controller, "get", "/apis"), true},
		{path(controller, "get", "/apis/tenancy.borough.io/v1"), true},
		{resource(controller, "update", group, "namespaces", ""), false},
		{resource(controller, "create", group, "namespaces", ""), false},
		{resource(controller, "create", group, "pods", ""), false},
		{resource(controller, "update", group, "pods", "status"), false},
		{resource(controller, "list", "", "pods", ""), false},
		{path(controller, "get", "/metrics"), false},
		{resource(somebody, "get", group, "namespaces", ""), false},
		{path(somebody, "get", "/readyz"), true},
		{path(anonymous, "get", "/readyz"), true},
		{path(anonymous, "get", "/livez/ping"), true},
		{path(anonymous, "get", "/apis"), false},
		{resource(anonymous, "list", group, "pods", ""), false},
	} {
		decision, _, err := policy.Authorize(context.Background(), tc.attributes)
		if err != nil {
			t.Errorf("%+v: %v", tc.attributes, err)
		}
		if got := decision == authorizer.DecisionAllow; got != tc.want {
			t.Errorf("%s may %s %s%s/%s: %v, want %v", tc.attributes.User.GetName(), tc.attributes.Verb,
				tc.attributes.Path, tc.attributes.Resource, tc.attributes.Subresource, got, tc.want)
		}
	}
}
