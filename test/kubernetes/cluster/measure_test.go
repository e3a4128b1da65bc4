// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	v1 "github.com/borough-io/borough/pkg/apis/tenancy/v1"
	"github.com/borough-io/borough/test/poll"
)

const (
	measuredNamespaces = 200
	measuredClients    = 16
	measuredRounds     = 3
)

// TestMeasurements installs Borough, creates empty Namespaces and deletes them, those of
// the cluster and those of Borough in turn, and logs what that took. It sets no limits;
// docs/benchmarks.md has results.
func TestMeasurements(t *testing.T) {
	s := newSite(t)
	overlay := s.writeOverlay(t, s.tag)
	s.step(t, "install", func(t *testing.T) { s.install(t, overlay) })
	s.step(t, "Namespaces", func(t *testing.T) {
		client, err := dynamic.NewForConfig(s.config)
		if err != nil {
			t.Fatal(err)
		}
		for range measuredRounds {
			measure(t, client, "the cluster", "")
			measure(t, client, "Borough", v1.GroupName)
		}
	})
	s.step(t, "uninstall", func(t *testing.T) { s.uninstall(t, overlay) })
}

// measure creates and deletes the Namespaces of a group.
func measure(t *testing.T, client dynamic.Interface, of, group string) {
	t.Helper()
	namespaces := client.Resource(schema.GroupVersionResource{Group: group, Version: "v1", Resource: "namespaces"})
	apiVersion := schema.GroupVersion{Group: group, Version: "v1"}.String()
	before := cpuTimes(t)
	start := time.Now()
	forEach(t, func(ctx context.Context, name string) error {
		ns := &unstructured.Unstructured{Object: map[string]any{"apiVersion": apiVersion, "kind": "Namespace", "metadata": map[string]any{"name": name}}}
		_, err := namespaces.Create(ctx, ns, metav1.CreateOptions{})
		return err
	})
	created, cpuToCreate := time.Since(start), cpuSince(t, before)
	deletion := time.Now()
	forEach(t, func(ctx context.Context, name string) error {
		return namespaces.Delete(ctx, name, metav1.DeleteOptions{})
	})
	err := poll.Until(t.Context(), timeout, func(ctx context.Context) error {
		list, err := namespaces.List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		if slices.ContainsFunc(list.Items, func(ns unstructured.Unstructured) bool { return ns.GetDeletionTimestamp() != nil }) {
			return fmt.Errorf("Namespaces of %s are Terminating", of)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	gone := time.Since(deletion)
	t.Logf("%d Namespaces of %s: created at %.0f/s, all gone %.1f s after the first delete; CPU for each: %s; to create it: %s",
		measuredNamespaces, of, measuredNamespaces/created.Seconds(), gone.Seconds(), cpuSince(t, before), cpuToCreate)
}

// forEach calls do for the name of each Namespace, by several clients.
func forEach(t *testing.T, do func(ctx context.Context, name string) error) {
	t.Helper()
	group, ctx := errgroup.WithContext(t.Context())
	group.SetLimit(measuredClients)
	for i := range measuredNamespaces {
		group.Go(func() error { return do(ctx, fmt.Sprintf("measured-%d", i)) })
	}
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
}

// processes are the names of the processes of a cluster, of which Linux keeps 15 bytes.
var processes = []string{
	"kube-apiserver", "kube-controller", "kube-scheduler", "kube-proxy", "kubelet", "containerd", "containerd-shim", "coredns",
	"etcd", "borough-apiserv", "borough-control",
}

// process is a process on this machine.
type process struct{ name, stat string }

// cpuSince describes the CPU time for each Namespace since before, in all processes of
// the cluster, and by their names.
func cpuSince(t *testing.T, before map[process]time.Duration) string {
	t.Helper()
	if before == nil {
		return "unknown, because the processes of the cluster do not run on this machine"
	}
	var sum float64
	byName := map[string]float64{}
	for p, after := range cpuTimes(t) {
		each := (after - before[p]).Seconds() * 1000 / measuredNamespaces
		sum += each
		byName[p.name] += each
	}
	var parts []string
	for _, name := range slices.SortedFunc(maps.Keys(byName), func(a, b string) int { return cmp.Compare(byName[b], byName[a]) }) {
		if byName[name] >= 0.1 {
			parts = append(parts, fmt.Sprintf("%s %.1f", name, byName[name]))
		}
	}
	return fmt.Sprintf("%.1f ms (%s)", sum, strings.Join(parts, ", "))
}

// cpuTimes returns the CPU time of each process of a cluster on this machine, or nothing
// if no kubelet runs on it.
func cpuTimes(t *testing.T) map[process]time.Duration {
	t.Helper()
	const tick = 10 * time.Millisecond // USER_HZ is 100
	files, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		t.Fatal(err)
	}
	times := map[process]time.Duration{}
	kubelet := false
	for _, file := range files {
		stat, err := os.ReadFile(file)
		if err != nil {
			continue // it has ended
		}
		name := string(stat[bytes.IndexByte(stat, '(')+1 : bytes.LastIndexByte(stat, ')')])
		if !slices.Contains(processes, name) {
			continue
		}
		kubelet = kubelet || name == "kubelet"
		fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
		for _, field := range fields[11:13] { // utime and stime
			ticks, err := strconv.Atoi(string(field))
			if err != nil {
				t.Fatal(err)
			}
			times[process{name, file}] += time.Duration(ticks) * tick
		}
	}
	if !kubelet {
		return nil
	}
	return times
}
