// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package testcluster

import (
	"os"
	"path/filepath"
	"testing"

	"k8s.io/client-go/rest"

	"github.com/borough-io/borough/test/harness"
)

// Kubectl returns the cluster's kubectl with all rights.
func (c *Cluster) Kubectl(t testing.TB) *harness.Kubectl { return c.KubectlAs(t, c.AdminConfig()) }

// KubectlAs returns the cluster's kubectl with the identity of the configuration.
func (c *Cluster) KubectlAs(t testing.TB, config *rest.Config) *harness.Kubectl {
	t.Helper()
	kubectl, err := c.newKubectl(config)
	if err != nil {
		t.Fatalf("set up kubectl: %v", err)
	}
	return kubectl
}

func (c *Cluster) newKubectl(config *rest.Config) (*harness.Kubectl, error) {
	path, err := Binary("kubectl")
	if err != nil {
		return nil, err
	}
	home, err := os.MkdirTemp(c.Dir, "kubectl-")
	if err != nil {
		return nil, err
	}
	kubeconfig, err := c.WriteKubeconfig(filepath.Base(home), config)
	if err != nil {
		return nil, err
	}
	return harness.NewKubectl(path, kubeconfig, home), nil
}
