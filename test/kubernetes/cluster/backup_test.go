// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/borough-io/borough/test/harness"
)

// maintain asks a server for its checks, and frees the space of deleted objects in
// etcd, by the commands of docs/operations.md.
func (s *site) maintain(t *testing.T) {
	dir := t.TempDir()
	// The port may be forwarded later than a user would type the next command.
	s.runDocumented(t, dir, "operations.md", "POD="+s.pods(t, server)[0].Name, "readyz", "direct", "until borough version; do sleep 1; done", "readyz-etcd")
	s.runDocumented(t, dir, "operations.md", "etcdctl-in-member", "etcd-status", "full")
}

// restoreBackup backs up etcd, changes objects, and restores the backup, by the
// commands of docs/backup.md.
func (s *site) restoreBackup(t *testing.T) {
	ctx := t.Context()
	c := s.createContent(t)
	dir := t.TempDir()
	// The port may be forwarded later than a user would type the next command.
	s.runDocumented(t, dir, "backup.md", "connect", "until etcdctl endpoint health; do sleep 1; done", "backup")

	last, err := c.client.Pods(c.live).Create(ctx, harness.NewPod("later"), metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.client.Pods(c.live).Delete(ctx, "a", metav1.DeleteOptions{GracePeriodSeconds: new(int64(0))}); err != nil {
		t.Fatal(err)
	}
	s.runDocumented(t, dir, "backup.md", "stop-servers", "restore-in-cluster", "restore-in-cluster-end")
	s.awaitRollout(t)
	s.awaitAvailable(t)
	s.runDocumented(t, dir, "backup.md", "delete-replaced")
	awaitTrue(t, "the servers have the restored objects", func(ctx context.Context) (bool, error) {
		_, err := c.client.Pods(c.live).Get(ctx, "later", metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return true, nil
		}
		return false, err
	})
	next, err := c.client.Pods("default").Create(ctx, harness.NewPod("borough-after-the-restore"), metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if version(next) <= version(last) {
		t.Errorf("a write after the restore has resourceVersion %d, one before it %d", version(next), version(last))
	}
	if err := c.client.Pods("default").Delete(ctx, next.Name, metav1.DeleteOptions{GracePeriodSeconds: new(int64(0))}); err != nil {
		t.Fatal(err)
	}
	c.check(t)
}

// runDocumented runs commands in one shell: those that comments in a file of docs name,
// and others.
func (s *site) runDocumented(t *testing.T, dir, file string, commands ...string) {
	t.Helper()
	var script string
	for _, c := range commands {
		if documented, err := harness.Documented(file, c); err == nil {
			c = documented
		}
		script += c + "\n"
	}
	kubectl, err := harness.KubectlPath()
	if err != nil {
		t.Fatal(err)
	}
	// hack/test-cluster.sh builds etcdctl into the directory of kubectl.
	path := filepath.Dir(kubectl) + string(filepath.ListSeparator) + os.Getenv("PATH")
	if err := harness.RunScript(dir, script, "KUBECONFIG="+s.kubeconfig, "PATH="+path); err != nil {
		t.Fatalf("the commands %q of docs/%s: %v", commands, file, err)
	}
}
