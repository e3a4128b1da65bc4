// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/borough-io/borough/test/harness"
	"github.com/borough-io/borough/test/poll"
)

// TestKustomize installs Borough with kubectl, disrupts it and uninstalls it.
func TestKustomize(t *testing.T) {
	s := newSite(t)
	overlay := s.writeOverlay(t, s.tag)
	s.step(t, "install", func(t *testing.T) { s.install(t, overlay) })
	s.step(t, "doctor", s.checkDoctor)
	s.step(t, "session", s.session)
	s.disrupt(t)
	s.step(t, "certificates of etcd renewed", s.renewCertificates)
	s.step(t, "maintenance", s.maintain)
	s.step(t, "backup and restore", s.restoreBackup)
	s.step(t, "doctor after disruptions", s.checkDoctor)
	s.checkFaults(t, overlay)
	s.step(t, "uninstall", func(t *testing.T) { s.uninstall(t, overlay) })
}

// install installs an overlay.
func (s *site) install(t *testing.T, overlay string) {
	t.Helper()
	s.kubectl.Run(t, "apply", "--kustomize="+overlay)
	s.awaitRollout(t)
	s.awaitAvailable(t)
}

// uninstall uninstalls an overlay as docs/deploy.md says.
func (s *site) uninstall(t *testing.T, overlay string) {
	t.Helper()
	s.kubectl.Run(t, "delete", "apiservice", apiService)
	s.await(t, "delete", "--kustomize="+overlay, "--ignore-not-found", attempt)
	s.awaitNothing(t)
}

// TestHelm installs Borough with Helm, upgrades it and uninstalls it.
func TestHelm(t *testing.T) {
	s := newSite(t)
	s.step(t, "install", func(t *testing.T) { s.helmInstall(t, s.tag) })
	s.step(t, "helm test", func(t *testing.T) { s.helm(t, "test", "borough", "--logs") })
	s.step(t, "upgrade", func(t *testing.T) {
		s.helm(t, append([]string{"upgrade", "--set=apiserver.replicas=3"}, s.release(s.tag)...)...)
		s.awaitRollout(t)
		if pods := s.pods(t, server); len(pods) < 3 {
			t.Errorf("%d servers after the upgrade to 3", len(pods))
		}
	})
	s.step(t, "session", s.session)
	s.step(t, "uninstall", s.helmUninstall)
}

// helmInstall installs the chart with a tag of the images, as docs/deploy.md says.
func (s *site) helmInstall(t *testing.T, tag string) {
	t.Helper()
	s.kubectl.Run(t, "create", "namespace", systemNamespace)
	s.kubectl.Run(t, "label", "namespace", systemNamespace, "pod-security.kubernetes.io/enforce=restricted")
	s.helm(t, append([]string{"install"}, s.release(tag)...)...)
	s.awaitAvailable(t)
}

func (s *site) helmUninstall(t *testing.T) {
	t.Helper()
	s.kubectl.Run(t, "delete", "apiservice", apiService)
	s.helm(t, "uninstall", "borough", "--wait", "--timeout="+timeout.String())
	// The volumes of etcd are in it.
	s.await(t, "delete", "namespace", systemNamespace, "--ignore-not-found", attempt)
	s.awaitNothing(t)
}

// release returns the name, the chart and the values of a release, for Helm.
func (s *site) release(tag string) []string {
	return []string{
		"borough", filepath.Join(harness.Root, "artifacts", "charts", "borough"), "--wait", "--timeout=" + timeout.String(),
		"--set=image.registry=" + s.registry, "--set-string=image.tag=" + tag, fmt.Sprintf("--set=etcd.members=%d", s.members),
	}
}

// TestOwnCertificates installs Borough with certificates of etcd that the commands in
// docs/deploy.md create.
func TestOwnCertificates(t *testing.T) {
	s := newSite(t)
	if s.members < 3 {
		t.Skip("the documented commands are for an etcd with three members")
	}
	overlay := s.writeKustomization(t, s.tag, `resources: [deploy/base]
components: [deploy/components/self-signed, deploy/components/etcd, deploy/components/tenant-roles]
`)
	s.step(t, "install", func(t *testing.T) {
		s.runDocumented(t, t.TempDir(), "deploy.md", "own-etcd-certificates")
		s.install(t, overlay)
	})
	s.step(t, "doctor", s.checkDoctor)
	s.step(t, "session", s.session)
	s.step(t, "uninstall", func(t *testing.T) { s.uninstall(t, overlay) })
}

// writeOverlay writes an overlay as in docs/deploy.md, with a tag of the images, and
// returns its directory.
func (s *site) writeOverlay(t *testing.T, tag string) string {
	t.Helper()
	if s.members == 1 {
		return s.writeKustomization(t, tag, "resources: [deploy/overlays/single-node]\n")
	}
	return s.writeKustomization(t, tag, "resources: [deploy]\n")
}

// writeKustomization writes an overlay of manifests in the directory deploy.
func (s *site) writeKustomization(t *testing.T, tag, manifests string) string {
	t.Helper()
	dir := t.TempDir()
	// kustomize accepts only relative paths.
	if err := os.CopyFS(filepath.Join(dir, "deploy"), os.DirFS(filepath.Join(harness.Root, "artifacts", "deploy"))); err != nil {
		t.Fatal(err)
	}
	overlay := "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\n" + manifests + "images:\n"
	for _, image := range []string{"borough-apiserver", "borough-controller-manager"} {
		overlay += fmt.Sprintf("- {name: %s, newName: %s, newTag: %q}\n", image, path.Join(s.registry, image), tag)
	}
	if err := os.WriteFile(filepath.Join(dir, "kustomization.yaml"), []byte(overlay), 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}

// helm runs Helm in the namespace of Borough and logs what it prints.
func (s *site) helm(t *testing.T, args ...string) {
	t.Helper()
	args = append([]string{"--namespace=" + systemNamespace}, args...)
	out, err := harness.HelmCommand(t.Context(), s.kubeconfig, t.TempDir(), args...).CombinedOutput()
	if err != nil {
		t.Fatalf("helm %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	t.Logf("helm %s:\n%s", args[1], out)
}

func (s *site) awaitAvailable(t *testing.T) {
	t.Helper()
	s.await(t, "wait", "--for=condition=Available", "apiservice/"+apiService, attempt)
}

// awaitNothing waits until the cluster has no object of Borough.
func (s *site) awaitNothing(t *testing.T) {
	t.Helper()
	err := poll.Until(t.Context(), timeout, func(ctx context.Context) error {
		objects, err := s.objects(ctx)
		if err == nil && objects != "" {
			err = errors.New(objects)
		}
		return err
	})
	if err != nil {
		t.Errorf("objects after the uninstallation: %v", err)
	}
	awaitGone(t, "the namespace", func(ctx context.Context) error {
		_, err := s.client.CoreV1().Namespaces().Get(ctx, systemNamespace, metav1.GetOptions{})
		return err
	})
}
