// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io/fs"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"k8s.io/apiserver/pkg/server/dynamiccertificates"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/borough-io/borough/cmd/borough-apiserver/app/options"
	"github.com/borough-io/borough/pkg/certificates"
	"github.com/borough-io/borough/test/harness"
)

// taken returns a port that another listener has.
func taken(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	return strconv.Itoa(listener.Addr().(*net.TCPAddr).Port)
}

// free returns a port that can be opened.
func free(t *testing.T) string {
	t.Helper()
	port, err := harness.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	return strconv.Itoa(port)
}

// TestConfigOpensNothing composes the config from options that nothing can be opened
// with: the data directory is in a file, and the port is taken.
func TestConfigOpensNothing(t *testing.T) {
	dir, log := t.TempDir(), filepath.Join(t.TempDir(), "audit", "log")
	opened, err := run(t, "--standalone", "--data-dir="+dir, "--secure-port="+free(t))
	if err != nil {
		t.Fatal(err)
	}
	deps, err := opened.Open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := deps.Close(); err != nil {
			t.Error(err)
		}
	}()
	before := files(t, dir)

	o, err := run(t, "--standalone", "--data-dir="+filepath.Join(dir, "admin.kubeconfig", "data"), "--secure-port="+taken(t), auditPolicy(t), "--audit-log-path="+log)
	if err != nil {
		t.Fatal(err)
	}
	config, err := o.Config(deps)
	if err != nil {
		t.Fatalf("Config needs what Open opens: %v", err)
	}
	// What reloads the certificates ends when it is run, not with the dependencies.
	ended, end := context.WithCancel(t.Context())
	end()
	for _, reloads := range []any{config.Generic.SecureServing.Cert, config.Generic.SecureServing.ClientCA} {
		reloads.(dynamiccertificates.ControllerRunner).Run(ended, 1)
	}
	if got, want := config.Generic.SecureServing.Listener.Addr().(*net.TCPAddr).Port, opened.SecureServing.BindPort; got != want {
		t.Errorf("the config listens on port %d, Open opened %d", got, want)
	}
	if after := files(t, dir); after != before {
		t.Errorf("Config changed the data directory from\n%s\nto\n%s", before, after)
	}
	if _, err := os.Stat(filepath.Dir(log)); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("Config created the directory of the audit log: %v", err)
	}
}

// files lists the files in a directory with their times, except those of etcd,
// which runs.
func files(t *testing.T, dir string) string {
	t.Helper()
	var list strings.Builder
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if path == filepath.Join(dir, "etcd") {
			return filepath.SkipDir
		}
		info, err := entry.Info()
		list.WriteString(path + " " + info.ModTime().String() + "\n")
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return list.String()
}

// TestOpenFails checks that a server that cannot open something names the flag in
// one line, and leaves nothing open.
func TestOpenFails(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	data, port := "--data-dir="+t.TempDir(), "--secure-port="+free(t)
	for _, tc := range []struct {
		name string
		args []string
		want []string
	}{
		{"data directory of etcd", []string{"--data-dir=" + file, port}, []string{"--data-dir: ", file}},
		{"data directory of certificates", []string{"--data-dir=" + file, "--etcd-servers=http://127.0.0.1:1", port}, []string{"--data-dir: ", file}},
		{"debug socket", []string{data, port, "--debug-socket-path=" + file}, []string{"--debug-socket-path: " + file + " exists and is not a socket"}},
		{"address", []string{data, port, "--bind-address=192.0.2.1"}, []string{"--bind-address and --secure-port: ", "192.0.2.1"}},
		{"egress selector", []string{data, port, "--egress-selector-config-file=" + file}, []string{"--egress-selector-config-file: "}},
		{"port", []string{data, "--secure-port=" + taken(t)}, []string{"--secure-port: ", "address already in use"}},
		{"certificate", []string{data, port, "--tls-cert-file=" + file + ".crt", "--tls-private-key-file=" + file}, []string{"--tls-cert-file: ", file}},
		{"audit log", []string{data, port, auditPolicy(t), "--audit-log-path=" + file + "/log"}, []string{"--audit-log-path", file}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			o, err := run(t, append([]string{"--standalone"}, tc.args...)...)
			if err != nil {
				t.Fatal(err)
			}
			deps, err := o.Open(t.Context())
			if err == nil {
				t.Fatal("Open returned no error", deps.Close())
			}
			for _, want := range tc.want {
				if !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
					t.Errorf("got %v, want one line with %q", err, want)
				}
			}
		})
	}
	// What the failed ones had opened is closed. A socket is what a killed server leaves behind.
	socket := filepath.Join(t.TempDir(), "socket")
	listener, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	openAndClose(t, "--standalone", data, port, "--debug-socket-path="+socket)
}

// openAndClose opens what a server with these arguments needs to start, and closes it.
func openAndClose(t *testing.T, args ...string) {
	t.Helper()
	o, err := run(t, args...)
	if err != nil {
		t.Fatal(err)
	}
	deps, err := o.Open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := deps.Close(); err != nil {
		t.Error(err)
	}
}

// openWithCertificate opens a server with a file that has a serving certificate, those above
// it and its key. It returns the data directory and the certificates.
func openWithCertificate(t *testing.T, pair certificates.Pair, above ...*x509.Certificate) (dir string, certPEM []byte) {
	t.Helper()
	certPEM, keyPEM, err := pair.EncodePEM(above...)
	if err != nil {
		t.Fatal(err)
	}
	dir, both := t.TempDir(), filepath.Join(t.TempDir(), "both.pem")
	if err := os.WriteFile(both, slices.Concat(keyPEM, certPEM), 0o600); err != nil {
		t.Fatal(err)
	}
	openAndClose(t, "--standalone", "--data-dir="+dir, "--secure-port="+free(t), "--etcd-servers=http://127.0.0.1:1", "--tls-cert-file="+both, "--tls-private-key-file="+both)
	return dir, certPEM
}

// TestCertDirectory opens a server in a cluster whose directory for the certificate has what
// remains when a server is killed while it writes there.
func TestCertDirectory(t *testing.T) {
	dir := t.TempDir()
	cert, key := filepath.Join(dir, "apiserver.crt"), filepath.Join(dir, "apiserver.key")
	args := []string{"--kubeconfig=" + filepath.Join(dir, "kubeconfig"), "--etcd-servers=http://127.0.0.1:1", "--secure-port=" + free(t), "--cert-dir=" + dir}
	if err := os.WriteFile(filepath.Join(dir, "kubeconfig"), []byte(kubeconfig), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct{ name, removed string }{
		{"nothing", ""},
		{"only the certificate", key},
		{"only the key", cert},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if tc.removed != "" {
				if err := os.Remove(tc.removed); err != nil {
					t.Fatal(err)
				}
			}
			openAndClose(t, args...)
			if _, err := tls.LoadX509KeyPair(cert, key); err != nil {
				t.Error(err)
			}
			before := files(t, dir)
			openAndClose(t, args...)
			if after := files(t, dir); after != before {
				t.Errorf("the second start has changed the directory from\n%s\nto\n%s", before, after)
			}
		})
	}
}

// TestKubeconfigsHaveNoServingKey serves with a file that has both a certificate and its key.
// The kubeconfigs trust the certificate, and do not have the key.
func TestKubeconfigsHaveNoServingKey(t *testing.T) {
	pair, err := certificates.NewCA("serving", time.Now(), time.Now().Add(time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	dir, certPEM := openWithCertificate(t, pair)
	for _, name := range []string{options.AdminKubeconfig, options.ControllerKubeconfig} {
		config, err := clientcmd.BuildConfigFromFlags("", filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Contains(config.CAData, certPEM) || bytes.Contains(config.CAData, []byte("PRIVATE KEY")) {
			t.Errorf("%s trusts\n%s", name, config.CAData)
		}
	}
}

// TestKubeconfigsOfAnotherCertificate serves with a certificate that is not valid for the
// address in the kubeconfigs. Clients with the kubeconfigs accept it.
func TestKubeconfigsOfAnotherCertificate(t *testing.T) {
	ca, err := certificates.NewCA("another", time.Now(), time.Now().Add(time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	for name, host := range map[string]string{
		"a name":    "borough.example",
		"names":     "*.borough.example",
		"localhost": "127.0.0.1",
		"addresses": "192.0.2.1",
	} {
		t.Run(name, func(t *testing.T) {
			pair, err := ca.Issue(certificates.Server("borough", []string{host}), time.Now(), time.Now().Add(time.Hour))
			if err != nil {
				t.Fatal(err)
			}
			dir, _ := openWithCertificate(t, pair, ca.Cert)
			config, err := clientcmd.BuildConfigFromFlags("", filepath.Join(dir, options.ControllerKubeconfig))
			if err != nil {
				t.Fatal(err)
			}
			server, err := url.Parse(config.Host)
			if err != nil {
				t.Fatal(err)
			}
			roots := x509.NewCertPool()
			roots.AppendCertsFromPEM(config.CAData)
			if _, err := pair.Cert.Verify(x509.VerifyOptions{Roots: roots, DNSName: cmp.Or(config.ServerName, server.Hostname())}); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestDataDirectoryIsLocked opens a data directory that another server uses, which does not
// embed etcd. The kubeconfigs remain those of that server.
func TestDataDirectoryIsLocked(t *testing.T) {
	dir := t.TempDir()
	open := func() (*options.Dependencies, error) {
		o, err := run(t, "--standalone", "--data-dir="+dir, "--secure-port="+free(t), "--etcd-servers=http://127.0.0.1:1")
		if err != nil {
			t.Fatal(err)
		}
		return o.Open(t.Context())
	}
	first, err := open()
	if err != nil {
		t.Fatal(err)
	}
	before := files(t, dir)
	second, err := open()
	if err == nil {
		t.Error("a second server uses the directory", second.Close())
	} else if !strings.Contains(err.Error(), "--data-dir: "+dir+" is in use by another process") || strings.Contains(err.Error(), "\n") {
		t.Errorf("got %v, want one line that says that the directory is in use", err)
	}
	if after := files(t, dir); after != before {
		t.Errorf("the second server has changed the data directory from\n%s\nto\n%s", before, after)
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	third, err := open()
	if err != nil {
		t.Fatal(err)
	}
	if err := third.Close(); err != nil {
		t.Error(err)
	}
}

// auditPolicy returns the flag with a policy that records nothing.
func auditPolicy(t *testing.T) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "policy.yaml")
	if err := os.WriteFile(file, []byte("apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: [{level: None}]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return "--audit-policy-file=" + file
}

// TestEncryptionConfigFails checks that the error for a file that cannot be used names the
// flag, and has none of the keys, also if the file is reloaded.
func TestEncryptionConfigFails(t *testing.T) {
	const (
		version = "apiVersion: apiserver.config.k8s.io/v1\n"
		kind    = "kind: EncryptionConfiguration\n"
		key     = "MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE="
		keys    = "resources: [{resources: ['*.*'], providers: [{aescbc: {keys: [{name: a, secret: " + key + "}]}}]}]\n"
	)
	for name, content := range map[string]string{
		"no resources":    version + kind,
		"no kind":         version + keys,
		"no version":      kind + keys,
		"another kind":    version + "kind: Secret\n" + keys,
		"another version": "apiVersion: v1\n" + kind + keys,
		"a key twice":     version + kind + keys + keys,
		"not YAML":        version + kind + keys + "[",
		"a long key":      version + kind + strings.Replace(keys, key, key+key, 1),
	} {
		t.Run(name, func(t *testing.T) { testEncryptionConfigFails(t, content, key) })
	}
}

func testEncryptionConfigFails(t *testing.T, content, key string) {
	file := filepath.Join(t.TempDir(), "encryption.yaml")
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, reload := range []string{"false", "true"} {
		o, err := run(t, "--standalone", "--data-dir="+t.TempDir(), "--secure-port="+free(t), "--etcd-servers=http://127.0.0.1:1",
			"--encryption-provider-config="+file, "--encryption-provider-config-automatic-reload="+reload)
		if err != nil {
			t.Fatal(err)
		}
		deps, err := o.Open(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := o.Config(deps); err == nil || !strings.Contains(err.Error(), "--encryption-provider-config: ") || strings.Contains(err.Error(), key) {
			t.Errorf("reload is %s: got %v, want an error with the flag, without the key", reload, err)
		}
		if err := deps.Close(); err != nil {
			t.Error(err)
		}
	}
}
