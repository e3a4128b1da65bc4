// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

// The program limitranger measures what Borough's LimitRanger costs a Pod: the
// plugin as the server has it, on an informer of its own. The benchmarks run it
// beside a program that does the same with Kubernetes' own plugin, which can't be
// linked with this one: their libraries are of two releases. What to measure comes
// as JSON on the standard input, what came out goes to the standard output.
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

// work is a Pod that is admitted again and again, and the LimitRanges of its
// Namespace.
type work struct {
	LimitRanges []v1.LimitRange
	Pod         v1.Pod
	// Namespaces is how many there are with the same LimitRanges, and InTurn in how
	// many of them the Pod is admitted in turn.
	Namespaces, InTurn int
}

// outcome is what it costs to admit the Pod once, and what has become of it.
type outcome struct {
	Seconds     float64 // of CPU time
	Allocations float64
	Pod         corev1.Pod
	// Memory is what is held for each LimitRange, in bytes.
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
		return fmt.Errorf("read what to do: %w", err)
	}
	// The Pods of all Namespaces are one, so that there is nothing to measure
	// besides what differs by Namespace.
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
	// A server's heap is so large that garbage is collected seldom, and has grown
	// before: so does this one in a first run, which does not count.
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

// cpuTime is what this process has spent, the collection of its garbage included.
// Unlike the time that passes, it does not depend on what else the machine does.
func cpuTime() time.Duration {
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		panic(err) // the arguments are valid
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

func namespace(i int) string { return fmt.Sprintf("namespace-%d", i) }

// heap is what is held on the heap, in bytes.
func heap() float64 {
	var stats runtime.MemStats
	runtime.GC()
	runtime.GC() // what the first has finalized
	runtime.ReadMemStats(&stats)
	return float64(stats.HeapAlloc)
}

// newPlugin makes the plugin as the server does, and fills its informer.
func newPlugin(ctx context.Context, w *work) (plugin, error) {
	client := fake.NewClientset()
	client.PrependReactor("list", "limitranges", func(clienttesting.Action) (bool, apiruntime.Object, error) {
		list := &v1.LimitRangeList{} // made anew, as decoding does
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
	limitRanger, err := plugins.InitPlugin(limitranger.PluginName, nil, boroughadmission.NewInitializer(informers, client))
	if err != nil {
		return nil, fmt.Errorf("make the plugin: %w", err)
	}
	informers.StartWithContext(ctx)
	informers.WaitForCacheSyncWithContext(ctx)
	return limitRanger.(plugin), nil
}
