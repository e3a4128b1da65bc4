// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

// The program limitranger measures what Kubernetes' own LimitRanger costs for a
// Pod, with a filled informer. It does the same as test/limitranger of the
// product does with Borough's plugin. It is a separate program, so that only this
// module has k8s.io/kubernetes and the replace directives that it needs.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"runtime/debug"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/kubernetes/pkg/apis/core"
	convert "k8s.io/kubernetes/pkg/apis/core/v1"
	"k8s.io/kubernetes/plugin/pkg/admission/limitranger"
)

// work has a Pod that is admitted repeatedly, and the LimitRanges of its
// Namespace.
type work struct {
	LimitRanges []corev1.LimitRange
	Pod         corev1.Pod
}

// outcome is the cost of admitting the Pod once, and the resulting Pod.
type outcome struct {
	Seconds     float64 // CPU time
	Allocations float64
	Pod         corev1.Pod
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
		return fmt.Errorf("decode the input: %w", err)
	}
	limitRanger, err := newPlugin(ctx, &w)
	if err != nil {
		return err
	}
	var pod core.Pod
	if err := convert.Convert_v1_Pod_To_core_Pod(&w.Pod, &pod, nil); err != nil {
		return fmt.Errorf("convert the Pod: %w", err)
	}
	given := make([]core.ResourceRequirements, len(pod.Spec.Containers))
	for i := range given {
		given[i] = pod.Spec.Containers[i].Resources
	}
	request := admission.NewAttributesRecord(&pod, nil, core.Kind("Pod").WithVersion("v1"), pod.Namespace, pod.Name,
		core.Resource("pods").WithVersion("v1"), "", admission.Create, nil, false, nil)

	var spent time.Duration
	measure := func(b *testing.B) {
		b.ReportAllocs()
		began := cpuTime()
		for b.Loop() {
			pod.Annotations = nil
			for i := range pod.Spec.Containers {
				pod.Spec.Containers[i].Resources = given[i]
			}
			if err = errors.Join(limitRanger.Admit(ctx, request, nil), limitRanger.Validate(ctx, request, nil)); err != nil {
				b.FailNow()
			}
		}
		spent = cpuTime() - began
	}
	// A server collects garbage seldom, because its heap is large and has already
	// grown. A first run, which does not count, grows this heap too.
	debug.SetGCPercent(1000)
	testing.Benchmark(measure)
	result := testing.Benchmark(measure)
	if err != nil {
		return err
	}
	n := float64(result.N)
	out := outcome{Seconds: spent.Seconds() / n, Allocations: float64(result.MemAllocs) / n}
	if err := convert.Convert_core_Pod_To_v1_Pod(&pod, &out.Pod, nil); err != nil {
		return fmt.Errorf("convert the Pod back: %w", err)
	}
	return json.NewEncoder(os.Stdout).Encode(out)
}

// cpuTime returns the CPU time of this process, including garbage collection.
// Unlike elapsed time, it does not depend on other processes.
func cpuTime() time.Duration {
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		panic(err) // the arguments are valid
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

// newPlugin makes the plugin as kube-apiserver does, and fills its informer.
func newPlugin(ctx context.Context, w *work) (*limitranger.LimitRanger, error) {
	var objects []runtime.Object
	for i := range w.LimitRanges {
		w.LimitRanges[i].Namespace = w.Pod.Namespace
		objects = append(objects, &w.LimitRanges[i])
	}
	client := fake.NewClientset(objects...)
	informers := informers.NewSharedInformerFactory(client, 0)
	limitRanger, err := limitranger.NewLimitRanger(nil)
	if err != nil {
		return nil, fmt.Errorf("make the plugin: %w", err)
	}
	limitRanger.SetExternalKubeInformerFactory(informers)
	limitRanger.SetExternalKubeClientSet(client)
	if err := limitRanger.ValidateInitialization(); err != nil {
		return nil, fmt.Errorf("make the plugin: %w", err)
	}
	informers.Start(ctx.Done())
	informers.WaitForCacheSync(ctx.Done())
	return limitRanger, nil
}
