// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/borough-io/borough/test/inpod"
)

// TestEmptyKubeconfigInAPod reads a kubeconfig without content, and one without a current
// context, where the process could connect to the cluster that it runs in.
func TestEmptyKubeconfigInAPod(t *testing.T) {
	file := filepath.Join(t.TempDir(), "kubeconfig")
	inpod.Run(t, func() {
		if config, err := (&Options{}).Config("test"); err != nil || config.Host != inpod.Host {
			t.Errorf("without a kubeconfig: got %v, %v, want the cluster", config, err)
		}
		for _, content := range []string{"", strings.ReplaceAll(kubeconfig, "current-context: c", "")} {
			if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
				t.Error(err)
				return
			}
			if config, err := (&Options{Kubeconfig: file}).Config("test"); err == nil || !strings.HasPrefix(err.Error(), "--kubeconfig="+file+": ") {
				t.Errorf("%q: got %v, %v, want an error with the flag", content, config, err)
			}
		}
	})
}
