// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package backup

import (
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/borough-io/borough/test/harness"
	"github.com/borough-io/borough/test/kubernetes/testcluster"
	"github.com/borough-io/borough/test/poll"
)

// TestFull fills an etcd of three members with Pods, and makes room.
func TestFull(t *testing.T) {
	ctx, dir := t.Context(), t.TempDir()
	etcd := testcluster.StartEtcdForTest(t, filepath.Join(dir, "etcd"), testcluster.EtcdOptions{Members: 3, Unsafe: true, QuotaBytes: 16 << 20})
	borough := harness.New(t)
	if err := borough.StartServer(ctx, etcd.ClientFlags()...); err != nil {
		t.Fatal(err)
	}
	if err := borough.StartController(ctx); err != nil {
		t.Fatal(err)
	}
	client := borough.Client(t).TenancyV1()
	createNamespace(t, client, "active")
	createNamespace(t, client, "terminating")
	createPod(t, client, "terminating", "held", finalizer)
	createLimitRange(t, client, "terminating")
	if err := client.Namespaces().Delete(ctx, "terminating", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	poll.Eventually(t, func() string {
		if pod, err := client.Pods("terminating").Get(ctx, "held", metav1.GetOptions{}); err != nil || pod.DeletionTimestamp == nil {
			return fmt.Sprintf("the Pod is not marked: %v", err)
		}
		return ""
	})

	create := func(i int) error {
		pod := harness.NewPod(fmt.Sprintf("pod-%d", i))
		pod.Annotations = map[string]string{"example.com/large": strings.Repeat("x", 200<<10)}
		_, err := client.Pods("active").Create(ctx, pod, metav1.CreateOptions{})
		return err
	}
	pods := 0
	var err error
	for ; err == nil && pods < 200; pods++ {
		err = create(pods)
	}
	wantFull := func(what string, err error) {
		t.Helper()
		status, ok := err.(apierrors.APIStatus)
		if !ok || status.Status().Code != http.StatusInsufficientStorage || !strings.Contains(err.Error(), "delete objects") {
			t.Fatalf("%s: got %v, want 507 that says what to do", what, err)
		}
	}
	wantFull("create a Pod", err)
	wantFull("delete an Active Namespace", client.Namespaces().Delete(ctx, "active", metav1.DeleteOptions{}))

	if err := client.Pods("active").Delete(ctx, "pod-0", metav1.DeleteOptions{}); err != nil {
		t.Errorf("delete a Pod: %v", err)
	}
	// A Namespace that is being deleted can still be removed.
	if _, err := client.Pods("terminating").Patch(ctx, "held", types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{}); err != nil {
		t.Errorf("remove a finalizer: %v", err)
	}
	awaitGone(t, client, "terminating")

	variables := []string{
		"KUBECONFIG=" + filepath.Join(borough.Dir, "admin.kubeconfig"), "HOME=" + dir, "NAMESPACE=active",
		"ETCDCTL_ENDPOINTS=" + etcd.Members[0].Endpoint,
		"ETCDCTL_CACERT=" + etcd.CAFile(), "ETCDCTL_CERT=" + etcd.CertFile(), "ETCDCTL_KEY=" + etcd.KeyFile(),
	}
	if err := runDocumented(dir, "operations.md", "full-delete", variables...); err != nil {
		t.Fatal(err)
	}
	wantFull("create a Pod after the deletes", create(pods))
	if err := runDocumented(dir, "operations.md", "full", variables...); err != nil {
		t.Fatal(err)
	}
	for i := range pods / 2 {
		if err := create(i); err != nil {
			t.Fatalf("create Pod %d after there is room: %v", i, err)
		}
	}
	// The compaction is no trouble to the server: its caches follow.
	poll.Eventually(t, func() string {
		list, err := client.Pods("active").List(ctx, metav1.ListOptions{ResourceVersion: "0"})
		if err != nil {
			return err.Error()
		}
		if len(list.Items) != pods/2 {
			return fmt.Sprintf("the server has %d Pods, want %d", len(list.Items), pods/2)
		}
		return ""
	})
}
