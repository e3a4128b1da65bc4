// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
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
)

// TestMeasurements installs Borough, creates empty Namespaces and deletes them, those of
// Borough and those of the cluster in turn, and logs what that took. It sets no limits;
// docs/benchmarks.md has results.
func TestMeasurements(t *testing.T) {
	s := newSite(t)
	overlay := s.writeOverlay(t, s.tag)
	s.step(t, "install", func(t *testing.T) { s.install(t, overlay) })
	s.step(t, "Namespaces", s.measure)
	s.step(t, "uninstall", func(t *testing.T) { s.uninstall(t, overlay) })
}

func (s *site) measure(t *testing.T) {
	client, err := dynamic.NewForConfig(s.config)
	if err != nil {
		t.Fatal(err)
	}
	for _, of := range []struct {
		what  string
		group string
	}{{"Borough", v1.GroupName}, {"the cluster", ""}, {"Borough", v1.GroupName}} {
		namespaces := client.Resource(schema.GroupVersionResource{Group: of.group, Version: "v1", Resource: "namespaces"})
		apiVersion := schema.GroupVersion{Group: of.group, Version: "v1"}.String()
		before := cpuTime(t)
		start := time.Now()
		forEach(t, func(ctx context.Context, name string) error {
			ns := &unstructured.Unstructured{Object: map[string]any{"apiVersion": apiVersion, "kind": "Namespace", "metadata": map[string]any{"name": name}}}
			_, err := namespaces.Create(ctx, ns, metav1.CreateOptions{})
			return err
		})
		created := time.Since(start)
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
				return fmt.Errorf("Namespaces of %s are Terminating", of.what)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		gone := time.Since(deletion)
		cpu := "unknown, because the processes of the cluster do not run on this machine"
		if before > 0 {
			cpu = fmt.Sprintf("%.1f ms of CPU each, in all processes of this machine", (cpuTime(t)-before).Seconds()*1000/measuredNamespaces)
		}
		t.Logf("%d Namespaces of %s: created at %.0f/s, all gone %.1f s after the first delete; %s",
			measuredNamespaces, of.what, measuredNamespaces/created.Seconds(), gone.Seconds(), cpu)
	}
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

// cpuTime returns the CPU time of all processes of this machine, except this one, or 0
// if no kubelet runs on it.
func cpuTime(t *testing.T) time.Duration {
	t.Helper()
	const tick = 10 * time.Millisecond // USER_HZ is 100
	files, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		t.Fatal(err)
	}
	var sum time.Duration
	kubelet := false
	for _, file := range files {
		stat, err := os.ReadFile(file)
		if err != nil || filepath.Base(filepath.Dir(file)) == strconv.Itoa(os.Getpid()) {
			continue // it has ended
		}
		kubelet = kubelet || bytes.Contains(stat, []byte("(kubelet)"))
		fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
		for _, field := range fields[11:13] { // utime and stime
			ticks, err := strconv.Atoi(string(field))
			if err != nil {
				t.Fatal(err)
			}
			sum += time.Duration(ticks) * tick
		}
	}
	if !kubelet {
		return 0
	}
	return sum
}
