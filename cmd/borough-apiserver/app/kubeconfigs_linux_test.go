// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/borough-io/borough/test/inpod"
)

// TestEmptyKubeconfigInAPod opens a server with a kubeconfig without content, and with one
// without a current context, where it could connect to the cluster that it runs in.
func TestEmptyKubeconfigInAPod(t *testing.T) {
	dir := t.TempDir()
	full := writeFile(t, dir, "full", kubeconfig)
	server := []string{"--etcd-servers=http://127.0.0.1:1", "--secure-port=" + free(t)}
	for _, bad := range []string{writeFile(t, dir, "empty", ""), writeFile(t, dir, "no-context", noContext)} {
		for flag, more := range map[string][]string{
			"--kubeconfig":                {"--serving-cert-secret=a/b"},
			"--authentication-kubeconfig": {"--kubeconfig=" + full},
			"--authorization-kubeconfig":  {"--kubeconfig=" + full},
			"--audit-webhook-config-file": {"--kubeconfig=" + full, auditPolicy(t)},
		} {
			flag += "=" + bad
			t.Run(strings.ReplaceAll(flag, dir, ""), func(t *testing.T) {
				o, err := run(t, append(append(more, flag), server...)...)
				if err != nil {
					t.Fatal(err)
				}
				inpod.Run(t, func() {
					deps, err := o.Open(t.Context())
					if err == nil {
						_, err = o.Config(deps)
						t.Error("opened", deps.Close())
					}
					if err == nil || !strings.HasPrefix(err.Error(), flag+": ") || strings.Contains(err.Error(), "\n") {
						t.Errorf("got %v, want one line with the flag", err)
					}
				})
			})
		}
		t.Run("doctor --kubeconfig="+filepath.Base(bad), func(t *testing.T) {
			inpod.Run(t, func() {
				if out, err := runDoctor(t, "--kubeconfig="+bad); err == nil || !strings.Contains(err.Error(), "--kubeconfig="+bad+": ") {
					t.Errorf("got %v, want an error with the flag\n%s", err, out)
				}
			})
		})
	}
}
