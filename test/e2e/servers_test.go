// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	v1 "github.com/borough-io/borough/pkg/apis/tenancy/v1"
	"github.com/borough-io/borough/pkg/generated/clientset/versioned"
	"github.com/borough-io/borough/pkg/storage/storagetest"
	"github.com/borough-io/borough/test/harness"
	"github.com/borough-io/borough/test/harness/etcdproxy"
)

// startTwo starts two servers with the same etcd and the same CA. The second one
// reaches etcd through a proxy, which loses the responses for which lose returns
// true.
func startTwo(t *testing.T, etcd string, lose func(method string, request []byte) bool, flags ...string) (first, second *harness.Borough, proxy *etcdproxy.Proxy) {
	t.Helper()
	proxy, err := etcdproxy.New(etcd, nil)
	if err != nil {
		t.Fatal(err)
	}
	proxy.Lose = lose
	t.Cleanup(func() {
		if err := proxy.Close(); err != nil {
			t.Error(err)
		}
	})
	first, second = harness.New(t), harness.New(t)
	if err := first.StartServer(t.Context(), append(flags, "--etcd-servers="+etcd)...); err != nil {
		t.Fatal(err)
	}
	if err := os.CopyFS(filepath.Join(second.Dir, "pki"), os.DirFS(filepath.Join(first.Dir, "pki"))); err != nil {
		t.Fatal(err)
	}
	if err := second.StartServer(t.Context(), append(flags, "--etcd-servers="+proxy.Endpoint())...); err != nil {
		t.Fatal(err)
	}
	return first, second, proxy
}

// TestLimitRangeOfAnotherServer writes LimitRanges through one server and, after
// its response, Pods through another one whose watches are delayed. The
// LimitRanges must apply to every Pod.
func TestLimitRangeOfAnotherServer(t *testing.T) {
	t.Parallel()
	rounds, workers := 4, 25 // they mostly wait for the watches
	if harness.RaceEnabled { // the race detector makes each write cost more
		rounds = 1
	}
	first, second, proxy := startTwo(t, storagetest.StartGRPC(t), nil)
	writer, late := first.Client(t), second.Client(t)
	proxy.SetDelay(200 * time.Millisecond)

	large, small := withResources(nil, quantities("cpu=2")), withResources(nil, quantities("cpu=100m"))
	var working sync.WaitGroup
	for worker := range workers {
		working.Go(func() {
			for range rounds {
				s := scenario{t: t, ctx: t.Context(), writer: writer, late: late, namespace: newNamespace(t, first), dryRun: worker%2 == 1}
				s.create("resized", small, true)

				s.write(newLimitRange("l", item("Container", "max cpu=1")))
				s.create("large-1", large, false)
				s.resize("resized", `{"limits": {"cpu": "2"}}`, false)
				s.create("small-1", small, true)

				s.write(newLimitRange("l", item("Container", "max cpu=3")))
				s.create("large-2", large, true) // a rejection must not be stale either
				s.resize("resized", `{"limits": {"cpu": "2"}}`, true)

				s.write(newLimitRange("l", item("Container", "default cpu=1")))
				s.create("invalid", withResources(quantities("cpu=2"), nil), false) // rejected by validation, after the default was set
				s.write(newLimitRange("l", item("Container", "max cpu=3")))
				s.create("valid", withResources(quantities("cpu=2"), nil), true)

				s.write(newLimitRange("k", item("Pod", "max cpu=1")))
				s.create("large-3", large, false)
				s.remove("k")
				s.create("large-4", large, true)
				s.remove("l")
				s.create("large-5", large, true)
			}
		})
	}
	working.Wait()
}

// TestLimitRangeAfterConflict resizes a Pod through a server whose watches are delayed, and
// which therefore needs two transactions, right after another server has changed the Pod
// and the LimitRange. The resize must not be rejected by the LimitRange from before.
func TestLimitRangeAfterConflict(t *testing.T) {
	t.Parallel()
	first, second, proxy := startTwo(t, storagetest.StartGRPC(t), nil)
	proxy.SetDelay(500 * time.Millisecond)
	s := scenario{t: t, ctx: t.Context(), writer: first.Client(t), late: second.Client(t), namespace: newNamespace(t, first)}
	s.write(newLimitRange("l", item("Container", "max cpu=3")))
	s.create("p", withResources(quantities("cpu=1"), quantities("cpu=1")), true)
	s.awaitFirst(s.late.TenancyV1().LimitRanges(s.namespace).Watch)
	s.awaitFirst(s.late.TenancyV1().Pods(s.namespace).Watch)

	s.write(newLimitRange("l", item("Container", "max cpu=5")))
	other := s
	other.late = s.writer
	other.resize("p", `{"limits": {"cpu": "4"}}`, true)
	s.resize("p", `{"requests": {"cpu": "500m"}}`, true)
}

// scenario runs the requests in one Namespace.
type scenario struct {
	t            *testing.T
	ctx          context.Context
	writer, late versioned.Interface
	namespace    string
	dryRun       bool // of Pods
}

func (s *scenario) write(lr *v1.LimitRange) {
	lr.Kind, lr.APIVersion = "LimitRange", v1.SchemeGroupVersion.String()
	_, err := s.writer.TenancyV1().LimitRanges(s.namespace).Patch(s.ctx, lr.Name, types.ApplyPatchType, toJSON(s.t, lr),
		metav1.PatchOptions{FieldManager: "e2e", Force: new(true)})
	if err != nil {
		s.t.Errorf("write LimitRange %s: %v", lr.Name, err)
	}
}

func (s *scenario) remove(name string) {
	if err := s.writer.TenancyV1().LimitRanges(s.namespace).Delete(s.ctx, name, metav1.DeleteOptions{}); err != nil {
		s.t.Errorf("delete LimitRange %s: %v", name, err)
	}
}

func (s *scenario) create(name string, resources func(*v1.Pod), admitted bool) {
	s.t.Helper()
	options := metav1.CreateOptions{}
	if s.dryRun && name != "resized" {
		options.DryRun = []string{metav1.DryRunAll}
	}
	_, err := s.late.TenancyV1().Pods(s.namespace).Create(s.ctx, newPod(name, resources), options)
	if (err == nil) != admitted {
		s.t.Errorf("Pod %s, dry run %t: got %v, want admitted: %t", name, s.dryRun, err, admitted)
	}
}

// awaitFirst waits until the server that a watch is sent to has an object.
func (s *scenario) awaitFirst(start func(context.Context, metav1.ListOptions) (watch.Interface, error)) {
	s.t.Helper()
	w, err := start(s.ctx, metav1.ListOptions{ResourceVersion: "0"})
	if err != nil {
		s.t.Fatal(err)
	}
	defer w.Stop()
	if event, open := <-w.ResultChan(); !open || event.Type != watch.Added {
		s.t.Fatalf("the watch begins with %v", event)
	}
}

func (s *scenario) resize(name, resources string, admitted bool) {
	s.t.Helper()
	options := metav1.PatchOptions{}
	if s.dryRun {
		options.DryRun = []string{metav1.DryRunAll}
	}
	body := []byte(`{"spec": {"containers": [{"name": "c", "resources": ` + resources + `}]}}`)
	_, err := s.late.TenancyV1().Pods(s.namespace).Patch(s.ctx, name, types.StrategicMergePatchType, body, options, "resize")
	if (err == nil) != admitted {
		s.t.Errorf("resize %s to %s, dry run %t: got %v, want admitted: %t", name, resources, s.dryRun, err, admitted)
	}
}
