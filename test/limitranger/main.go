// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

// The program limitranger measures the cost of Borough's LimitRanger per Pod. It
// sets up the plugin like the server, with a separate informer. The benchmarks
// also run a program that does the same with Kubernetes' plugin. It is a separate
// program, so that the product's go.mod has no k8s.io/kubernetes.
// The program reads what to measure as JSON from the standard input and writes
// the result to the standard output.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/apiserver/pkg/admission"
	clienttesting "k8s.io/client-go/testing"

	boroughadmission "github.com/borough-io/borough/pkg/admission"
	"github.com/borough-io/borough/pkg/admission/limitranger"
	"github.com/borough-io/borough/pkg/apis/tenancy"
	v1 "github.com/borough-io/borough/pkg/apis/tenancy/v1"
	"github.com/borough-io/borough/pkg/generated/clientset/versioned/fake"
	"github.com/borough-io/borough/pkg/generated/informers/externalversions"
)

// work is a Pod that is admitted repeatedly, and the LimitRanges of its
// Namespace.
type work struct {
	LimitRanges []v1.LimitRange
	Pod         v1.Pod
	// Namespaces is the number of Namespaces with these LimitRanges, and InTurn in
	// how many of them the Pod is admitted in turn.
	Namespaces, InTurn int
}

// outcome is the cost of admitting the Pod once, and the resulting Pod.
type outcome struct {
	Seconds     float64 // of CPU time
	Allocations float64
	Pod         corev1.Pod
	// Memory is the memory that is kept for each LimitRange, in bytes.
	Memory float64
}

// plugin is the LimitRanger.
type plugin interface {
	admission.MutationInterface
	admission.ValidationInterface
}

func main() {
	if err := run(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, "limitranger:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	testing.Init()
	flag.Parse()
	var w work
	if err := json.NewDecoder(os.Stdin).Decode(&w); err != nil {
		return fmt.Errorf("read the work from the standard input: %w", err)
	}
	// All Namespaces share one Pod, so that the memory per Namespace is only what
	// the plugin keeps.
	pod := &tenancy.Pod{ObjectMeta: w.Pod.ObjectMeta, Spec: w.Pod.Spec}
	requests := make([]admission.Attributes, w.Namespaces)
	for i := range requests {
		requests[i] = admission.NewAttributesRecord(pod, nil, v1.SchemeGroupVersion.WithKind("Pod"), namespace(i), pod.Name,
			v1.SchemeGroupVersion.WithResource("pods"), "", admission.Create, nil, false, nil)
	}
	given := make([]corev1.ResourceRequirements, len(pod.Spec.Containers))
	for i := range given {
		given[i] = pod.Spec.Containers[i].Resources
	}
	var limitRanger plugin
	admit := func(i int) error {
		pod.Annotations = nil
		for i := range pod.Spec.Containers {
			pod.Spec.Containers[i].Resources = given[i]
		}
		request := requests[i]
		return errors.Join(limitRanger.Admit(ctx, request, nil), limitRanger.Validate(ctx, request, nil))
	}

	before := heap()
	var err error
	if limitRanger, err = newPlugin(ctx, &w); err != nil {
		return err
	}
	for i := range requests {
		if err := admit(i); err != nil {
			return err
		}
	}
	held := heap() - before

	var spent time.Duration
	measure := func(b *testing.B) {
		b.ReportAllocs()
		began := cpuTime()
		for i := 0; b.Loop(); i++ {
			if err = admit(i % w.InTurn); err != nil {
				b.FailNow()
			}
		}
		spent = cpuTime() - began
	}
	// In a server, the heap has already grown and is so large that garbage is
	// collected seldom. A first run, which does not count, brings this process into
	// the same state.
	debug.SetGCPercent(1000)
	testing.Benchmark(measure)
	result := testing.Benchmark(measure)
	if err != nil {
		return err
	}
	n := float64(result.N)
	return json.NewEncoder(os.Stdout).Encode(outcome{
		Seconds:     spent.Seconds() / n,
		Allocations: float64(result.MemAllocs) / n,
		Pod:         corev1.Pod{ObjectMeta: pod.ObjectMeta, Spec: pod.Spec},
		Memory:      held / float64(w.Namespaces*len(w.LimitRanges)),
	})
}

// cpuTime returns the CPU time of this process, garbage collection included.
// Unlike the elapsed time, it does not depend on the load of the machine.
func cpuTime() time.Duration {
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		panic(err) // the arguments are valid
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

func namespace(i int) string { return fmt.Sprintf("namespace-%d", i) }

// heap returns the size of the live heap, in bytes.
func heap() float64 {
	var stats runtime.MemStats
	runtime.GC()
	runtime.GC() // collects what the first has finalized
	runtime.ReadMemStats(&stats)
	return float64(stats.HeapAlloc)
}

// newPlugin creates the plugin like the server, and fills its informer.
func newPlugin(ctx context.Context, w *work) (plugin, error) {
	client := fake.NewClientset()
	client.PrependReactor("list", "limitranges", func(clienttesting.Action) (bool, apiruntime.Object, error) {
		list := &v1.LimitRangeList{} // a new list each time, as from decoding
		for i := range w.Namespaces {
			for _, limitRange := range w.LimitRanges {
				item := limitRange.DeepCopy()
				item.Namespace, item.UID, item.ResourceVersion = namespace(i), uuid.NewUUID(), "1"
				list.Items = append(list.Items, *item)
			}
		}
		return true, list, nil
	})
	informers := externalversions.NewSharedInformerFactory(client, 0)
	plugins := admission.NewPlugins()
	limitranger.Register(plugins)
	limitRanger, err := plugins.InitPlugin(limitranger.PluginName, nil, &boroughadmission.Initializer{Informers: informers, Client: client})
	if err != nil {
		return nil, fmt.Errorf("create the plugin: %w", err)
	}
	informers.StartWithContext(ctx)
	informers.WaitForCacheSyncWithContext(ctx)
	return limitRanger.(plugin), nil
}
