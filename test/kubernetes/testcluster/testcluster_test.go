// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package testcluster_test

import (
	"context"
	"os"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/borough-io/borough/test/kubernetes/testcluster"
	"github.com/borough-io/borough/test/poll"
)

// TestCluster crashes and restarts the processes of a cluster, as other tests
// do.
func TestCluster(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: it starts a control plane")
	}
	ctx := t.Context()
	began := time.Now()
	cluster := testcluster.New(t, testcluster.Options{Etcd: testcluster.EtcdOptions{Members: 3, Unsafe: true}})
	t.Logf("ready after %s", time.Since(began).Round(time.Millisecond))
	client := cluster.Client(t)

	version, err := client.Discovery().ServerVersion()
	if err != nil {
		t.Fatal(err)
	}
	if want := "v1.37.2"; version.GitVersion != want || version.Major != "1" || version.Minor != "37" {
		t.Errorf("version of kube-apiserver: got %+v, want %s", version, want)
	}
	kubectl := cluster.Kubectl(t)
	if out := kubectl.Run(t, "version"); strings.Count(out, "v1.37.2") != 2 {
		t.Errorf("kubectl version: got\n%s\nwant v1.37.2 for both sides", out)
	}

	// The namespace controller works, also after a crash.
	namespaces := client.CoreV1().Namespaces()
	create := func(name string) {
		t.Helper()
		if _, err := namespaces.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	create("one")
	cluster.ControllerManager.Kill()
	if err := namespaces.Delete(ctx, "one", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := cluster.StartControllerManager(ctx); err != nil {
		t.Fatal(err)
	}
	poll.Eventually(t, func() string {
		_, err := namespaces.Get(ctx, "one", metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return ""
		}
		return "the namespace one is still there"
	})

	// The API server keeps its address and its data after a crash.
	create("two")
	cluster.APIServer.Kill()
	if err := cluster.StartAPIServer(ctx); err != nil {
		t.Fatal(err)
	}
	if _, err := namespaces.Get(ctx, "two", metav1.GetOptions{}); err != nil {
		t.Errorf("after a crash: %v", err)
	}

	// One member of three may hang or crash.
	member := cluster.Etcd.Members[0]
	if err := member.Process.Pause(); err != nil {
		t.Fatal(err)
	}
	poll.Eventually(t, func() string {
		ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
		defer cancel()
		if _, err := namespaces.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "three"}}, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
			return "with one member paused: " + err.Error()
		}
		return ""
	})
	if err := member.Process.Resume(); err != nil {
		t.Fatal(err)
	}
	member.Process.Kill()
	if err := member.Start(ctx); err != nil {
		t.Fatal(err)
	}

	began = time.Now()
	if err := cluster.Stop(); err != nil {
		t.Error(err)
	}
	t.Logf("stopped after %s", time.Since(began).Round(time.Millisecond))
	if _, err := os.Stat(cluster.Dir); !os.IsNotExist(err) {
		t.Errorf("Stop left %s: %v", cluster.Dir, err)
	}
}
