// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package charge_test

import (
	"fmt"
	"testing"

	"go.etcd.io/etcd/api/v3/etcdserverpb"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	genericrequest "k8s.io/apiserver/pkg/endpoints/request"
	genericregistry "k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/borough-io/borough/pkg/apis/tenancy"
	tenancyerrors "github.com/borough-io/borough/pkg/apis/tenancy/errors"
	"github.com/borough-io/borough/test/poll"
)

// TestRemovedNamespace removes a Namespace with a quota, and creates it again without one.
// Both servers have charged the quota. An update by a server that remembers it takes a
// second transaction.
func TestRemovedNamespace(t *testing.T) {
	f := newPipelineFixture(t)
	f.createQuota("q")
	for i := range f.servers {
		f.create(i, fmt.Sprint("counted", i))
	}
	cluster := genericrequest.WithNamespace(t.Context(), metav1.NamespaceNone)
	remover := f.servers[1]
	for i := range f.servers {
		f.delete(remover.Pods, fmt.Sprint("counted", i))
	}
	f.deleteQuota()
	if _, _, err := remover.Namespaces.Delete(cluster, "a", rest.ValidateAllObjectFunc, &metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	poll.Eventually(t, func() string {
		list, err := f.servers[0].Namespaces.List(cluster, &internalversion.ListOptions{ResourceVersion: "0"})
		if err != nil {
			return err.Error()
		}
		if n := len(list.(*tenancy.NamespaceList).Items); n > 0 {
			return "the other server still has the Namespace"
		}
		return ""
	})

	if err := create(cluster, remover.Namespaces, &tenancy.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "a"}}); err != nil {
		t.Fatal(err)
	}
	for i, server := range f.servers {
		name := fmt.Sprint("updated", i)
		f.create(1, name)
		before := f.written(name)
		err := update(f.ctx, server.Pods, name, func(pod *tenancy.Pod) {
			pod.Spec.Containers[0].Resources.Requests[corev1.ResourceCPU] = resource.MustParse("1")
		})
		if err != nil {
			t.Fatal(err)
		}
		if n := f.written(name) - before; n != 1 {
			t.Errorf("server %d sent %d transactions, want 1", i, n)
		}
	}
}

// TestDeletedQuotaWhenFull deletes a Pod after another server has deleted its quota, while
// etcd has no space to charge that. The server learns of it from the error.
func TestDeletedQuotaWhenFull(t *testing.T) {
	f := newPipelineFixture(t)
	f.createQuota("q")
	f.create(0, "p")
	full := &etcdserverpb.AlarmRequest{Action: etcdserverpb.AlarmRequest_ACTIVATE, Alarm: etcdserverpb.AlarmType_NOSPACE}
	if _, err := etcdserverpb.NewMaintenanceClient(f.client.ActiveConnection()).Alarm(f.ctx, full); err != nil {
		t.Fatal(err)
	}
	f.deleteQuota()
	pods := f.servers[0].Pods
	if _, _, err := pods.Delete(f.ctx, "p", rest.ValidateAllObjectFunc, &metav1.DeleteOptions{}); !tenancyerrors.IsStorageFull(err) {
		t.Errorf("got %v, want StorageFull", err)
	}
	f.delete(pods, "p")
}

func (f *pipelineFixture) delete(store *genericregistry.Store, name string) {
	f.t.Helper()
	if _, _, err := store.Delete(f.ctx, name, rest.ValidateAllObjectFunc, &metav1.DeleteOptions{}); err != nil {
		f.t.Fatal(err)
	}
}

// written returns the number of transactions that were to write a Pod.
func (f *pipelineFixture) written(pod string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.writes[pod]
}
