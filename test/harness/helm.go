// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"context"
	"os"
	"os/exec"
)

// HelmCommand returns the command that runs the helm of the module in the current
// directory, which must be test/kubernetes or below. Helm keeps its files in home.
func HelmCommand(ctx context.Context, kubeconfig, home string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "go", append([]string{"run", "helm.sh/helm/v4/cmd/helm"}, args...)...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+kubeconfig,
		"HELM_CACHE_HOME="+home, "HELM_CONFIG_HOME="+home, "HELM_DATA_HOME="+home)
	return cmd
}
