// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/protobuf/proto"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	typed "github.com/borough-io/borough/pkg/generated/clientset/versioned/typed/tenancy/v1"
	"github.com/borough-io/borough/pkg/storage/storagetest"
	"github.com/borough-io/borough/test/harness"
	"github.com/borough-io/borough/test/harness/etcdproxy"
)

// TestCreateIsCarriedOutOnce loses etcd's response to a create that was committed,
// while other clients delete, change and replace the object. The retry must not
// create the object a second time.
func TestCreateIsCarriedOutOnce(t *testing.T) {
	t.Parallel()
	etcd := storagetest.StartGRPC(t)
	var first *harness.Borough
	pods := func(ns string) typed.PodInterface { return first.Client(t).TenancyV1().Pods(ns) }
	// concurrently has what other clients do before the create is retried, by the
	// name of the Pod.
	concurrently := map[string]func(ns, name string) error{
		"deleted": func(ns, name string) error {
			return pods(ns).Delete(t.Context(), name, metav1.DeleteOptions{})
		},
		"changed": func(ns, name string) error {
			_, err := pods(ns).Patch(t.Context(), name, types.MergePatchType, []byte(`{"metadata": {"labels": {"changed": "yes"}}}`), metav1.PatchOptions{})
			return err
		},
		"replaced": func(ns, name string) error {
			if err := pods(ns).Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
				return err
			}
			_, err := pods(ns).Create(t.Context(), newPod(name), metav1.CreateOptions{})
			return err
		},
		"undisturbed": func(_, _ string) error { return nil },
	}
	var once sync.Map // by key
	lose := func(method string, data []byte) bool {
		var request etcdserverpb.TxnRequest
		if method != etcdproxy.MethodTxn || proto.Unmarshal(data, &request) != nil || len(request.Success) != 1 {
			return false
		}
		key := string(request.Success[0].GetRequestPut().GetKey())
		path, isPod := strings.CutPrefix(key, "/registry/tenancy.borough.io/pods/")
		if !isPod {
			return false
		}
		if _, again := once.LoadOrStore(key, true); again {
			return false
		}
		ns, name, _ := strings.Cut(path, "/")
		if err := concurrently[name](ns, name); err != nil {
			t.Errorf("%s: %v", key, err)
		}
		return true
	}
	var second *harness.Borough
	first, second, _ = startTwo(t, etcd, lose)
	client := storagetest.NewClient(t, etcd)

	ns := newNamespace(t, first)
	// The first create in a Namespace reads the Namespace and is committed by its
	// second transaction, the others by their first.
	for _, name := range []string{"undisturbed", "deleted", "changed", "replaced"} {
		created, err := second.Client(t).TenancyV1().Pods(ns).Create(t.Context(), newPod(name), metav1.CreateOptions{})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		key := fmt.Sprintf("/registry/tenancy.borough.io/pods/%s/%s", ns, name)
		var creations []string
		for _, event := range historyOf(t, client, key) {
			if event.IsCreate() {
				creations = append(creations, fmt.Sprint(event.Kv.ModRevision))
			}
		}
		want := 1
		if name == "replaced" {
			want = 2 // one by the other client
		}
		if len(creations) != want || !slices.Contains(creations, created.ResourceVersion) {
			t.Errorf("%s: the key was created at revisions %v; the response has %s", name, creations, created.ResourceVersion)
		}
	}
}

// historyOf returns all events of a key.
func historyOf(t *testing.T, client *clientv3.Client, key string) (events []*clientv3.Event) {
	t.Helper()
	for _, event := range eventsOf(t, client) {
		if string(event.Kv.Key) == key {
			events = append(events, event)
		}
	}
	return events
}

// eventsOf returns all events until now.
func eventsOf(t *testing.T, client *clientv3.Client) (events []*clientv3.Event) {
	t.Helper()
	mark, err := client.Put(t.Context(), "/registry/mark", "")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	for response := range client.Watch(ctx, "/registry/", clientv3.WithPrefix(), clientv3.WithRev(1)) {
		if err := response.Err(); err != nil {
			t.Fatal(err)
		}
		for _, event := range response.Events {
			if event.Kv.ModRevision == mark.Header.Revision {
				return events
			}
			events = append(events, event)
		}
	}
	t.Fatal("the watch ended")
	return nil
}
