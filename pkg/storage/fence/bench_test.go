// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package fence_test

import (
	"context"
	"fmt"
	"strconv"
	"sync/atomic"
	"syscall"
	"testing"

	metainternal "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	genericrequest "k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/borough-io/borough/pkg/apis/tenancy"
	"github.com/borough-io/borough/pkg/storage"
	"github.com/borough-io/borough/pkg/storage/fence"
	"github.com/borough-io/borough/pkg/storage/precondition"
	"github.com/borough-io/borough/pkg/storage/storagetest"
)

// benchmark runs a benchmark in-process and over gRPC, with the fence and
// without.
func benchmark(b *testing.B, run func(b *testing.B, stores storagetest.Stores)) {
	for _, transport := range []string{"in-process", "grpc"} {
		for _, fenced := range []bool{true, false} {
			b.Run(fmt.Sprintf("%s/fence=%t", transport, fenced), func(b *testing.B) {
				if !fenced {
					fence.TurnOff(b)
				}
				options := storage.NewOptions()
				config := storagetest.NewConfig(nil)
				if transport == "in-process" {
					config.Embedded = storagetest.StartEmbedded(b)
				} else {
					options.Etcd.StorageConfig.Transport.ServerList = []string{storagetest.StartGRPC(b)}
				}
				stores := storagetest.NewStores(b, options, config)
				createNamespace(b, stores, "town")
				run(b, stores)
			})
		}
	}
}

func createNamespace(b *testing.B, stores storagetest.Stores, name string) {
	b.Helper()
	ctx := genericrequest.WithNamespace(b.Context(), metav1.NamespaceNone)
	_, err := stores.Namespaces.Create(ctx, &tenancy.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}, rest.ValidateAllObjectFunc, &metav1.CreateOptions{})
	if err != nil {
		b.Fatal(err)
	}
}

// measureCPU reports the CPU time for each operation of the benchmark that follows.
// It is more precise than the elapsed time, which depends on the disk and on other
// load.
func measureCPU(b *testing.B) func() {
	b.Helper()
	spent := func() int64 {
		var usage syscall.Rusage
		if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
			b.Fatal(err)
		}
		return usage.Utime.Nano() + usage.Stime.Nano()
	}
	before := spent()
	return func() { b.ReportMetric(float64(spent()-before)/float64(b.N), "cpu-ns/op") }
}

func createPod(ctx context.Context, b *testing.B, stores storagetest.Stores, i int64) {
	pod := &tenancy.Pod{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("p", i), Namespace: "town"}}
	if _, err := stores.Pods.Create(ctx, pod, rest.ValidateAllObjectFunc, &metav1.CreateOptions{}); err != nil {
		b.Error(err)
	}
}

func BenchmarkCreate(b *testing.B) {
	benchmark(b, func(b *testing.B, stores storagetest.Stores) {
		ctx := genericrequest.WithNamespace(b.Context(), "town")
		b.ReportAllocs()
		defer measureCPU(b)()
		for i := int64(0); b.Loop(); i++ {
			createPod(ctx, b, stores, i)
		}
	})
}

func BenchmarkCreateParallel(b *testing.B) {
	benchmark(b, func(b *testing.B, stores storagetest.Stores) {
		ctx := genericrequest.WithNamespace(b.Context(), "town")
		var i atomic.Int64
		b.SetParallelism(16)
		b.ReportAllocs()
		defer measureCPU(b)()
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				createPod(ctx, b, stores, i.Add(1))
			}
		})
	})
}

// BenchmarkCreateRequiring creates Pods on the condition that the LimitRanges in
// the Namespace have not changed, or without a condition (-1).
func BenchmarkCreateRequiring(b *testing.B) {
	for _, limitRanges := range []int{-1, 0, 1, 3, 10} {
		b.Run(fmt.Sprintf("limitranges=%d", limitRanges), func(b *testing.B) {
			stores := storagetest.NewStores(b, storage.NewOptions(), storagetest.NewConfig(storagetest.StartEmbedded(b)))
			createNamespace(b, stores, "town")
			ctx := genericrequest.WithNamespace(b.Context(), "town")
			required := precondition.Objects{Resource: tenancy.Resource("limitranges"), Namespace: "town"}
			for i := range limitRanges {
				obj, err := stores.LimitRanges.Create(ctx, &tenancy.LimitRange{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("l", i), Namespace: "town"}},
					rest.ValidateAllObjectFunc, &metav1.CreateOptions{})
				if err != nil {
					b.Fatal(err)
				}
				created := obj.(*tenancy.LimitRange)
				revision, err := strconv.ParseInt(created.ResourceVersion, 10, 64)
				if err != nil {
					b.Fatal(err)
				}
				required.Versions = append(required.Versions, precondition.Version{Name: created.Name, Revision: revision})
			}
			b.ReportAllocs()
			defer measureCPU(b)()
			for i := int64(0); b.Loop(); i++ {
				ctx, attempt := precondition.NewAttempt(ctx, nil, 0)
				if limitRanges >= 0 {
					attempt.Require(required)
				}
				createPod(ctx, b, stores, i)
			}
		})
	}
}

// BenchmarkRemove removes empty Namespaces.
func BenchmarkRemove(b *testing.B) {
	benchmark(b, func(b *testing.B, stores storagetest.Stores) {
		ctx := genericrequest.WithNamespace(b.Context(), metav1.NamespaceNone)
		for b.Loop() {
			b.StopTimer()
			createNamespace(b, stores, "empty")
			b.StartTimer()
			if _, _, err := stores.Namespaces.Delete(ctx, "empty", rest.ValidateAllObjectFunc, &metav1.DeleteOptions{}); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// BenchmarkDeleteCollection deletes 2,000 Pods at a time.
func BenchmarkDeleteCollection(b *testing.B) {
	benchmark(b, func(b *testing.B, stores storagetest.Stores) {
		ctx := genericrequest.WithNamespace(b.Context(), "town")
		for b.Loop() {
			b.StopTimer()
			for i := range int64(2000) {
				createPod(ctx, b, stores, i)
			}
			b.StartTimer()
			_, err := stores.Pods.DeleteCollection(ctx, rest.ValidateAllObjectFunc, &metav1.DeleteOptions{}, &metainternal.ListOptions{})
			if err != nil {
				b.Fatal(err)
			}
		}
	})
}
