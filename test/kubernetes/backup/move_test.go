// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package backup

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.etcd.io/etcd/server/v3/embed"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/borough-io/borough/pkg/apis/tenancy/v1"
	"github.com/borough-io/borough/pkg/storage/storagetest"
	"github.com/borough-io/borough/test/harness"
)

// TestMoveToExternalEtcd moves a standalone server to an external etcd of the version of
// the embedded one. Clients continue with their kubeconfigs.
func TestMoveToExternalEtcd(t *testing.T) {
	before := harness.New(t)
	if err := before.StartServer(t.Context()); err != nil {
		t.Fatal(err)
	}
	client := before.Client(t).TenancyV1()
	createNamespace(t, client, "live")
	createLimitRange(t, client, "live")
	_, err := client.ResourceQuotas("live").Create(t.Context(), &v1.ResourceQuota{
		ObjectMeta: metav1.ObjectMeta{Name: "quota"},
		Spec:       corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{"pods": resource.MustParse("3")}},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	createNamespace(t, client, "terminating")
	createPod(t, client, "terminating", "pod")
	if err := client.Namespaces().Delete(t.Context(), "terminating", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	last := createPod(t, client, "live", "pod")
	acknowledged := mustContents(t, client)
	if err := before.Stop(); err != nil {
		t.Fatal(err)
	}

	dir := t.TempDir()
	if err := runDocumented(dir, "backup.md", "standalone-move", "DATA_DIR="+before.Dir); err != nil {
		t.Fatal(err)
	}
	etcd := storagetest.StartGRPC(t, func(config *embed.Config) {
		err := runDocumented(dir, "backup.md", "standalone-move-restore",
			"NAME="+config.Name, "PEER_URL="+config.AdvertisePeerUrls[0].String(), "CLUSTER="+config.InitialCluster, "MEMBER_DIR="+config.Dir)
		if err != nil {
			t.Fatal(err)
		}
	})
	after := harness.New(t)
	after.Dir, after.Port = before.Dir, before.Port
	if err := after.StartServer(t.Context(), "--etcd-servers="+etcd); err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(filepath.Join(after.Dir, "etcd")); err != nil {
		t.Fatal(err)
	}

	wantRestored(t, client, acknowledged)
	if got := len(mustContents(t, client)); got != len(acknowledged) {
		t.Errorf("there are %d objects after the move, want %d", got, len(acknowledged))
	}
	wantExpired(t, client, last.ResourceVersion)
	wantFenced(t, client, "live", "terminating")
	wantLater(t, createPod(t, client, "live", "next").ResourceVersion, last.ResourceVersion)
	// The usage of the quota, which is in etcd, includes the Pod from before.
	_, err = client.Pods("live").Create(t.Context(), harness.NewPod("excess"), metav1.CreateOptions{})
	if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "used: pods=3, limited: pods=3") {
		t.Errorf("create a fourth Pod: got %v, want a denial by the quota", err)
	}
	if err := after.StartController(t.Context()); err != nil {
		t.Fatal(err)
	}
	awaitGone(t, client, "terminating")
}
