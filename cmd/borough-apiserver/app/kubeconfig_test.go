// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/tools/clientcmd"
	certutil "k8s.io/client-go/util/cert"

	"github.com/borough-io/borough/pkg/certificates"
	"github.com/borough-io/borough/pkg/standalone"
)

// runKubeconfig runs the subcommand and returns its standard output.
func runKubeconfig(t *testing.T, args ...string) (string, error) {
	t.Helper()
	var out bytes.Buffer
	cmd := NewCommand(nil) // run starts the server; the subcommand does not call it
	cmd.SetOut(&out)
	cmd.SetErr(&bytes.Buffer{})
	cmd.SetArgs(append([]string{"kubeconfig"}, args...))
	err := cmd.ExecuteContext(t.Context())
	return out.String(), err
}

// dataDir returns the data directory of a server that was started once.
func dataDir(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	pki, err := standalone.EnsurePKI(filepath.Join(dir, "pki"), []string{"localhost"})
	if err != nil {
		t.Fatal(err)
	}
	kubeconfigs := standalone.Kubeconfigs{Server: "https://127.0.0.1:6443", TrustedCA: []byte("# another CA\n"), TLSServerName: "name"}
	if err := kubeconfigs.Write(pki, filepath.Join(dir, "admin.kubeconfig"), filepath.Join(dir, "controller.kubeconfig")); err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestKubeconfig(t *testing.T) {
	dir := dataDir(t)
	admin, err := clientcmd.BuildConfigFromFlags("", filepath.Join(dir, "admin.kubeconfig"))
	if err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		args   []string
		groups []string
		server string
		valid  time.Duration
	}{
		"defaults":       {nil, nil, "https://127.0.0.1:6443", 720 * time.Hour},
		"a group":        {[]string{"--group=a"}, []string{"a"}, "https://127.0.0.1:6443", 720 * time.Hour},
		"several groups": {[]string{"--group=a,b", "--group=ü"}, []string{"a,b", "ü"}, "https://127.0.0.1:6443", 720 * time.Hour},
		"a reserved one": {[]string{"--group=system:authenticated"}, []string{"system:authenticated"}, "https://127.0.0.1:6443", 720 * time.Hour},
		"an admin":       {[]string{"--group=system:masters", "--allow-system-masters"}, []string{"system:masters"}, "https://127.0.0.1:6443", 720 * time.Hour},
		"another URL":    {[]string{"--server=https://borough.example"}, nil, "https://borough.example", 720 * time.Hour},
		"another time":   {[]string{"--expires=90s"}, nil, "https://127.0.0.1:6443", 90 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			before := time.Now().Truncate(time.Second)
			out, err := runKubeconfig(t, append([]string{"--data-dir=" + dir, "--user=alice"}, tc.args...)...)
			if err != nil {
				t.Fatal(err)
			}
			config, err := clientcmd.RESTConfigFromKubeConfig([]byte(out))
			if err != nil {
				t.Fatal(err)
			}
			if config.Host != tc.server || !bytes.Equal(config.CAData, admin.CAData) {
				t.Errorf("the server is %s, want %s, with the CAs of the admin", config.Host, tc.server)
			}
			// The name is for the address of the admin.
			if named := config.ServerName == admin.ServerName; named != (tc.server == admin.Host) {
				t.Errorf("the server %s is verified as %q", config.Host, config.ServerName)
			}
			pair, err := certificates.ParsePEM(config.CertData, config.KeyData)
			if err != nil {
				t.Fatal(err)
			}
			subject := pair.Cert.Subject
			slices.Sort(subject.Organization)
			if subject.CommonName != "alice" || !slices.Equal(subject.Organization, tc.groups) {
				t.Errorf("the subject is %s, want alice and the groups %q", subject, tc.groups)
			}
			if end := pair.Cert.NotAfter; end.Before(before.Add(tc.valid)) || end.After(time.Now().Add(tc.valid)) {
				t.Errorf("it expires at %s, want %s from now", end, tc.valid)
			}
			ca, err := certutil.CertsFromFile(filepath.Join(dir, "pki", "ca.crt"))
			if err != nil {
				t.Fatal(err)
			}
			if err := certificates.Covers(pair.Cert, ca[0], certificates.Client(pair.Cert.Subject), time.Now()); err != nil {
				t.Error(err)
			}
		})
	}

	t.Run("a file", func(t *testing.T) {
		file := filepath.Join(t.TempDir(), "alice.kubeconfig")
		if err := os.WriteFile(file, []byte("old"), 0o644); err != nil {
			t.Fatal(err)
		}
		out, err := runKubeconfig(t, "--data-dir="+dir, "--user=alice", "--output="+file)
		if err != nil || out != "" {
			t.Fatalf("got %v and the output %q", err, out)
		}
		info, err := os.Stat(file)
		if err != nil {
			t.Fatal(err)
		}
		if info.Mode().Perm() != 0o600 {
			t.Errorf("its mode is %o", info.Mode().Perm())
		}
		if _, err := clientcmd.BuildConfigFromFlags("", file); err != nil {
			t.Error(err)
		}
	})

	t.Run("a link", func(t *testing.T) {
		link := filepath.Join(t.TempDir(), "stdout")
		if err := os.Symlink("/dev/stdout", link); err != nil {
			t.Fatal(err)
		}
		_, err := runKubeconfig(t, "--data-dir="+dir, "--user=alice", "--output="+link)
		if err == nil || !strings.Contains(err.Error(), "without --output, the kubeconfig is written to the standard output") {
			t.Errorf("got %v", err)
		}
		if to, err := os.Readlink(link); err != nil || to != "/dev/stdout" {
			t.Errorf("the link is %q, %v", to, err)
		}
	})
}

// TestKubeconfigFails checks that bad input gets one line that names the flag, and
// changes no file.
func TestKubeconfigFails(t *testing.T) {
	remove := func(names ...string) func(string) error {
		return func(dir string) error { return os.Remove(filepath.Join(append([]string{dir}, names...)...)) }
	}
	for name, tc := range map[string]struct {
		args   []string
		damage func(dir string) error
		want   string
	}{
		"no user":            {[]string{"--user="}, nil, "--user must not be empty"},
		"a user in Latin-1":  {[]string{"--user=\xfc"}, nil, `--user must be UTF-8, not "\xfc"`},
		"an empty group":     {[]string{"--group="}, nil, `--group must be UTF-8 and not empty, not ""`},
		"system:masters":     {[]string{"--group=a", "--group=system:masters"}, nil, "add --allow-system-masters"},
		"expired":            {[]string{"--expires=-1h"}, nil, "--expires must be positive, not -1h"},
		"no time":            {[]string{"--expires=0"}, nil, "--expires must be positive, not 0s"},
		"not a time":         {[]string{"--expires=30d"}, nil, "--expires"},
		"longer than the CA": {[]string{"--expires=90000h"}, nil, "--expires: the CA expires at "},
		"longest time":       {[]string{"--expires=2562047h"}, nil, "--expires: the CA expires at "},
		"no URL":             {[]string{"--server=borough.example"}, nil, `--server must be a URL such as https://borough.example:6443, not "borough.example"`},
		"HTTP":               {[]string{"--server=http://borough.example"}, nil, "--server must be a URL"},
		"no data directory":  {[]string{"--data-dir="}, nil, "--data-dir must not be empty"},
		"another directory":  {[]string{"--data-dir=/dev/null"}, nil, "--data-dir: read a certificate: open /dev/null/pki/ca.crt: not a directory"},
		"no CA":              {nil, remove("pki", "ca.crt"), "--data-dir: read a certificate: "},
		"no key":             {nil, remove("pki", "ca.key"), "ca.key is missing"},
		"no kubeconfig":      {nil, remove("admin.kubeconfig"), "admin.kubeconfig: no such file"},
		"an empty kubeconfig": {nil, func(dir string) error { return os.Truncate(filepath.Join(dir, "admin.kubeconfig"), 0) },
			"admin.kubeconfig: its current context has no cluster"},
		"an unreadable key": {nil, func(dir string) error { return os.Truncate(filepath.Join(dir, "pki", "ca.key"), 9) }, "--data-dir: read "},
		"a directory":       {[]string{"--output=/"}, nil, "--output: / is not a regular file"},
		"no such directory": {[]string{"--output=/dev/null/file"}, nil, "--output: write /dev/null/file"},
		"an argument":       {[]string{"alice"}, nil, `"alice"`},
		"an unknown flag":   {[]string{"--standalone"}, nil, "--standalone"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := dataDir(t)
			if tc.damage != nil {
				if err := tc.damage(dir); err != nil {
					t.Fatal(err)
				}
			}
			before := files(t, dir)
			out, err := runKubeconfig(t, append([]string{"--data-dir=" + dir, "--user=alice"}, tc.args...)...)
			if err == nil || !strings.Contains(err.Error(), tc.want) || strings.Contains(err.Error(), "\n") || out != "" {
				t.Errorf("got %v and the output %q, want one line with %q", err, out, tc.want)
			}
			if after := files(t, dir); after != before {
				t.Errorf("the data directory has changed from\n%s\nto\n%s", before, after)
			}
		})
	}
}
