// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package backup

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"github.com/borough-io/borough/pkg/generated/informers/externalversions"
	"github.com/borough-io/borough/test/harness"
	"github.com/borough-io/borough/test/kubernetes/testcluster"
	"github.com/borough-io/borough/test/poll"
)

const finalizer = "example.com/hold"

// TestBackup backs up a deployment during writes, and restores the backup into
// a new deployment. An informer of the old one continues with the new one
// without a restart.
func TestBackup(t *testing.T) {
	ctx := t.Context()
	cluster := testcluster.New(t, testcluster.Options{
		Etcd:                testcluster.EtcdOptions{Unsafe: true},
		NoControllerManager: true, // the test does not need it
	})
	etcd := testcluster.StartEtcdForTest(t, filepath.Join(cluster.Dir, "before"), testcluster.EtcdOptions{Members: 3, Unsafe: true})
	before := cluster.NewBorough(t, testcluster.BoroughOptions{Etcd: etcd})
	client := cluster.BoroughClient(t).TenancyV1()

	live := createNamespace(t, client, "live")
	createLimitRange(t, client, "live")
	for i := range 20 {
		createPod(t, client, "live", fmt.Sprintf("pod-%d", i))
	}
	// A finalizer blocks the purge of one Namespace; another is not purged because
	// no controller runs.
	createNamespace(t, client, "held")
	createPod(t, client, "held", "pod", finalizer)
	createNamespace(t, client, "waiting")
	createPod(t, client, "waiting", "pod")
	if err := before.Controllers[0].Process.Stop(); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"held", "waiting"} {
		if err := client.Namespaces().Delete(ctx, name, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	acknowledged, stored := mustContents(t, client), keys(t, etcd)

	factory := externalversions.NewSharedInformerFactory(cluster.BoroughClient(t), 0)
	pods := factory.Tenancy().V1().Pods().Lister()
	informerCtx, cancel := context.WithCancel(ctx)
	factory.Start(informerCtx.Done())
	defer factory.Shutdown()
	defer cancel()
	factory.WaitForCacheSync(informerCtx.Done())

	// A client writes continuously. Writes after the backup are lost.
	writing, stopWriting := context.WithCancel(ctx)
	defer stopWriting()
	var writer sync.WaitGroup
	written := make(chan struct{}, 1)
	writer.Go(func() {
		for i := 0; writing.Err() == nil; i++ {
			if _, err := client.Pods("live").Create(ctx, harness.NewPod(fmt.Sprintf("written-%d", i)), metav1.CreateOptions{}); err != nil {
				t.Errorf("create a Pod during the backup: %v", err)
				return
			}
			select {
			case written <- struct{}{}:
			default:
			}
		}
	})
	awaitWrites := func() {
		for range 5 {
			<-written
		}
	}
	dir := t.TempDir()
	awaitWrites()
	err := runDocumented(dir, "backup.md", "backup",
		"ETCDCTL_ENDPOINTS="+etcd.Members[0].Endpoint,
		"ETCDCTL_CACERT="+etcd.CAFile(), "ETCDCTL_CERT="+etcd.CertFile(), "ETCDCTL_KEY="+etcd.KeyFile())
	if err != nil {
		t.Fatal(err)
	}
	awaitWrites()
	stopWriting()
	writer.Wait()
	lost := createPod(t, client, "live", "lost")
	poll.Eventually(t, func() string {
		if _, err := pods.Pods("live").Get("lost"); err != nil {
			return err.Error()
		}
		return ""
	})
	if err := before.Stop(); err != nil {
		t.Fatal(err)
	}
	etcd.Kill()

	restore := func(member testcluster.EtcdRestore) error {
		return runDocumented(dir, "backup.md", "restore", "NAME="+member.Name, "PEER_URL="+member.PeerURL, "CLUSTER="+member.Cluster, "DATA_DIR="+member.DataDir)
	}
	etcd = testcluster.StartEtcdForTest(t, filepath.Join(cluster.Dir, "after"), testcluster.EtcdOptions{Members: 3, Unsafe: true, Restore: restore})
	restored := keys(t, etcd)
	for key, was := range stored {
		if diff := cmp.Diff(was.String(), restored[key].String()); diff != "" {
			t.Errorf("%s after the restore (-want +got):\n%s", key, diff)
		}
	}
	cluster.NewBorough(t, testcluster.BoroughOptions{Etcd: etcd})
	for _, name := range []string{"Namespace /waiting", "Pod waiting/pod", "Namespace /held", "Pod held/pod"} {
		delete(acknowledged, name) // the controller changes it
	}
	wantRestored(t, client, acknowledged)
	wantExpired(t, client, lost.ResourceVersion)
	wantFenced(t, client, "live", "held")
	wantLater(t, createPod(t, client, "live", "next").ResourceVersion, lost.ResourceVersion)

	awaitGone(t, client, "waiting")
	if _, err := client.Pods("held").Patch(ctx, "pod", types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	awaitGone(t, client, "held")

	// The informer follows the restored state.
	poll.Eventually(t, func() string {
		there, err := client.Pods("").List(ctx, metav1.ListOptions{})
		if err != nil {
			return err.Error()
		}
		known, err := pods.List(labels.Everything())
		if err != nil {
			return err.Error()
		}
		versions := map[types.UID]string{}
		for _, pod := range known {
			versions[pod.UID] = pod.ResourceVersion
		}
		for _, pod := range there.Items {
			if versions[pod.UID] != pod.ResourceVersion {
				return fmt.Sprintf("the informer has Pod %s at %q, the server at %s", pod.Name, versions[pod.UID], pod.ResourceVersion)
			}
		}
		if len(known) != len(there.Items) {
			return fmt.Sprintf("the informer has %d Pods, the server %d", len(known), len(there.Items))
		}
		return ""
	})
	if ns, err := client.Namespaces().Get(ctx, live.Name, metav1.GetOptions{}); err != nil || ns.UID != live.UID {
		t.Errorf("the Namespace live: UID %q, error %v, want UID %q", ns.UID, err, live.UID)
	}
}

// keys returns all keys in etcd.
func keys(t *testing.T, etcd *testcluster.Etcd) map[string]*mvccpb.KeyValue {
	t.Helper()
	client, err := etcd.NewClient()
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	response, err := client.Get(t.Context(), "/registry/", clientv3.WithPrefix())
	if err != nil {
		t.Fatalf("read etcd: %v", err)
	}
	all := map[string]*mvccpb.KeyValue{}
	for _, kv := range response.Kvs {
		all[string(kv.Key)] = kv
	}
	return all
}

func wantLater(t *testing.T, next, last string) {
	t.Helper()
	a, errA := strconv.ParseUint(next, 10, 64)
	b, errB := strconv.ParseUint(last, 10, 64)
	if errA != nil || errB != nil || a <= b {
		t.Errorf("after the restore, a write has resourceVersion %s, which is not above %s from before", next, last)
	}
}

// TestStandaloneBackup does the same with a server that embeds etcd.
func TestStandaloneBackup(t *testing.T) {
	borough := harness.New(t)
	if err := borough.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	client := borough.Client(t).TenancyV1()
	createNamespace(t, client, "live")
	createLimitRange(t, client, "live")
	createPod(t, client, "live", "pod")
	createNamespace(t, client, "held")
	createPod(t, client, "held", "pod", finalizer)
	if err := client.Namespaces().Delete(t.Context(), "held", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	poll.Eventually(t, func() string { // after which nothing changes
		ns, err := client.Namespaces().Get(t.Context(), "held", metav1.GetOptions{})
		if err != nil {
			return err.Error()
		}
		if len(ns.Status.Conditions) == 0 {
			return "no condition reports what the Namespace waits for"
		}
		return ""
	})
	if err := borough.Stop(); err != nil {
		t.Fatal(err)
	}
	dir, dataDir := t.TempDir(), "DATA_DIR="+borough.Dir
	if err := runDocumented(dir, "backup.md", "standalone-backup", dataDir); err != nil {
		t.Fatal(err)
	}
	if err := borough.StartServer(t.Context()); err != nil {
		t.Fatal(err)
	}
	acknowledged := mustContents(t, client) // the content of the backup
	createPod(t, client, "live", "another")
	lost := createPod(t, client, "live", "lost")
	restore := func(variables ...string) {
		t.Helper()
		if err := borough.Stop(); err != nil {
			t.Fatal(err)
		}
		if err := runDocumented(dir, "backup.md", "standalone-restore", append(variables, dataDir)...); err != nil {
			t.Fatal(err)
		}
		if err := borough.StartServer(t.Context()); err != nil {
			t.Fatal(err)
		}
		replaced, err := filepath.Glob(borough.Dir + ".replaced-*/pki/ca.crt")
		if err != nil || len(replaced) != 1 {
			t.Fatalf("the replaced data is in %q, error %v", replaced, err)
		}
		// The names have seconds: the next restore may be in the same one.
		if err := os.RemoveAll(filepath.Dir(filepath.Dir(replaced[0]))); err != nil {
			t.Fatal(err)
		}
		wantRestored(t, client, acknowledged)
		if got := len(mustContents(t, client)); got != len(acknowledged) {
			t.Errorf("there are %d objects after the restore, want %d", got, len(acknowledged))
		}
		wantExpired(t, client, lost.ResourceVersion)
		wantFenced(t, client, "live", "held")
		wantLater(t, createPod(t, client, "live", "next").ResourceVersion, lost.ResourceVersion)
	}
	restore()
	lost = createPod(t, client, "live", "lost")
	restore("BUMP=2000000000")
	if err := borough.StartController(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := client.Pods("held").Patch(t.Context(), "pod", types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	awaitGone(t, client, "held")
}
