// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const (
	noContext  = "apiVersion: v1\nkind: Config\nclusters: [{name: c, cluster: {server: \"https://192.0.2.2\"}}]\ncontexts: [{name: c, context: {cluster: c}}]\n"
	kubeconfig = noContext + "current-context: c\n"
)

// writeFile writes a file in a directory, and returns its path.
func writeFile(t *testing.T, dir, name, content string) string {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestAwaitChange opens a server, and writes another kubeconfig into the file of each flag.
func TestAwaitChange(t *testing.T) {
	inCluster := "--kubeconfig=" + writeFile(t, t.TempDir(), "other", kubeconfig)
	for _, tc := range []struct {
		flag string
		args []string
	}{
		{"--kubeconfig", nil},
		{"--authentication-kubeconfig", []string{inCluster}},
		{"--authorization-kubeconfig", []string{inCluster}},
		{"--audit-webhook-config-file", []string{inCluster, auditPolicy(t)}},
		{"--audit-webhook-config-file", []string{"--standalone", "--data-dir=" + t.TempDir(), auditPolicy(t)}},
	} {
		t.Run(tc.flag, func(t *testing.T) {
			dir := t.TempDir()
			set := tc.flag + "=" + writeFile(t, dir, "set", kubeconfig)
			o, err := run(t, append(tc.args, set, "--etcd-servers=http://127.0.0.1:1", "--secure-port="+free(t))...)
			if err != nil {
				t.Fatal(err)
			}
			deps, err := o.Open(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			defer func() {
				if err := deps.Close(); err != nil {
					t.Error(err)
				}
			}()
			ended, end := context.WithCancel(t.Context())
			end()
			if err := deps.AwaitChange(ended); err != nil {
				t.Errorf("without a change: %v", err)
			}
			writeFile(t, dir, "set", kubeconfig+"# renewed\n")
			if err := deps.AwaitChange(t.Context()); err == nil || !strings.HasPrefix(err.Error(), set+" has changed") {
				t.Errorf("got %v, want an error with the flag", err)
			}
		})
	}
}
