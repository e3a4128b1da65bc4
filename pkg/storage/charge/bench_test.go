// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package charge_test

import (
	"fmt"
	"sync/atomic"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	genericrequest "k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/borough-io/borough/pkg/apis/tenancy"
	"github.com/borough-io/borough/pkg/storage"
	"github.com/borough-io/borough/pkg/storage/storagetest"
)

// BenchmarkCreate creates Pods in one Namespace with 32 goroutines, without a quota and
// with one, through one server and through two.
func BenchmarkCreate(b *testing.B) {
	for _, transport := range []string{"in-process", "grpc"} {
		for _, servers := range []int{1, 2} {
			for _, quotas := range []int{0, 1} {
				b.Run(fmt.Sprintf("%s/servers=%d/quotas=%d", transport, servers, quotas), func(b *testing.B) {
					benchmarkCreate(b, transport, servers, quotas)
				})
			}
		}
	}
}

func benchmarkCreate(b *testing.B, transport string, servers, quotas int) {
	options, config := storage.NewOptions(), storagetest.NewConfig(nil)
	if transport == "in-process" {
		config.Embedded = storagetest.StartEmbedded(b)
	} else {
		options.Etcd.StorageConfig.Transport.ServerList = []string{storagetest.StartGRPC(b)}
	}
	stores := make([]storagetest.Stores, servers)
	for i := range stores {
		stores[i] = storagetest.NewStores(b, options, config)
	}
	ns := &tenancy.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "a"}}
	if _, err := stores[0].Namespaces.Create(genericrequest.WithNamespace(b.Context(), metav1.NamespaceNone), ns, rest.ValidateAllObjectFunc, &metav1.CreateOptions{}); err != nil {
		b.Fatal(err)
	}
	ctx := genericrequest.WithNamespace(b.Context(), "a")
	hard := corev1.ResourceList{"pods": resource.MustParse("1e9"), "requests.cpu": resource.MustParse("1e9")}
	for range quotas {
		quota := &tenancy.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Name: "q", Namespace: "a"}, Spec: corev1.ResourceQuotaSpec{Hard: hard}, Status: corev1.ResourceQuotaStatus{Hard: hard}}
		if err := create(ctx, stores[0].ResourceQuotas, quota); err != nil {
			b.Fatal(err)
		}
	}
	var next atomic.Int64
	b.SetParallelism(16)
	b.ResetTimer()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			i := next.Add(1)
			pod := &tenancy.Pod{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("p", i), Namespace: "a"}}
			pod.Spec.Containers = []corev1.Container{{Name: "c", Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1m")}}}}
			if err := create(ctx, stores[i%int64(servers)].Pods, pod); err != nil {
				b.Error(err)
				return
			}
		}
	})
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "creates/s")
}
