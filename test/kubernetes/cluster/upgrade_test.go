// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"os"
	"strings"
	"testing"
)

// TestUpgrade installs an earlier version and upgrades it under load, with kubectl and
// with Helm. Both versions are installed by the present manifests.
func TestUpgrade(t *testing.T) {
	previous := os.Getenv("BOROUGH_CLUSTER_PREVIOUS")
	if previous == "" {
		t.Skip("BOROUGH_CLUSTER_PREVIOUS is not set: the tag of the images to upgrade from")
	}
	t.Run("kustomize", func(t *testing.T) {
		s := newSite(t)
		s.step(t, "install", func(t *testing.T) { s.install(t, s.writeOverlay(t, previous)) })
		overlay := s.writeOverlay(t, s.tag)
		s.upgrade(t, previous, func(t *testing.T) { s.kubectl.Run(t, "apply", "--kustomize="+overlay) })
		s.step(t, "uninstall", func(t *testing.T) { s.uninstall(t, overlay) })
	})
	t.Run("Helm", func(t *testing.T) {
		s := newSite(t)
		s.step(t, "install", func(t *testing.T) { s.helmInstall(t, previous) })
		s.upgrade(t, previous, func(t *testing.T) { s.helm(t, append([]string{"upgrade"}, s.release(s.tag)...)...) })
		s.step(t, "uninstall", s.helmUninstall)
	})
}

// upgrade upgrades the deployment from the previous version.
func (s *site) upgrade(t *testing.T, previous string, run func(*testing.T)) {
	s.step(t, "upgrade", func(t *testing.T) {
		s.checkTag(t, previous)
		c := s.createContent(t)
		l := s.startLoad(t)
		run(t)
		s.awaitRollout(t)
		s.checkTag(t, s.tag)
		l.finish(t, planned)
		c.check(t)
	})
	s.step(t, "session", s.session)
	s.step(t, "doctor", s.checkDoctor)
}

// checkTag fails the test unless all servers and controllers run an image with a tag.
func (s *site) checkTag(t *testing.T, tag string) {
	t.Helper()
	for _, workload := range []string{server, controller} {
		for _, pod := range s.pods(t, workload) {
			if image := pod.Spec.Containers[0].Image; !strings.HasSuffix(image, ":"+tag) {
				t.Errorf("Pod %s runs the image %s, not one with the tag %s", pod.Name, image, tag)
			}
		}
	}
}
