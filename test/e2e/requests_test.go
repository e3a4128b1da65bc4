// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"regexp"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/borough-io/borough/pkg/apis/tenancy/v1"
	"github.com/borough-io/borough/test/harness"
	"github.com/borough-io/borough/test/poll"
)

// TestTerminationRequests counts what the deletion of empty Namespaces takes: one
// request of the user and one of the controller, and a write and a removal of each
// Namespace in etcd, without a read in most cases.
func TestTerminationRequests(t *testing.T) {
	t.Parallel()
	b := harness.New(t)
	if err := b.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	const n = 20
	for i := range n {
		ns := &v1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("empty-%d", i)}}
		if _, err := b.Client(t).TenancyV1().Namespaces().Create(t.Context(), ns, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	// A DELETE of a Namespace that the watch cache does not have yet reads it from etcd.
	waitForCached(t, b, n+1)
	before := countRequests(t, b)
	for i := range n {
		deleteNamespace(t, b, fmt.Sprintf("empty-%d", i))
	}
	waitForCached(t, b, 1)
	want := map[string]int{
		"DELETE namespaces": n, "POST namespacepurges": n,
		"etcd update namespaces": n, "etcd delete namespaces": n,
	}
	poll.Eventually(t, func() string { // a request is counted after its response
		got := map[string]int{}
		for request, count := range countRequests(t, b) {
			if more := count - before[request]; more > 0 {
				got[request] = more
			}
		}
		// The controller's watch can be ahead of the watch cache: its purge then reads the
		// Namespace from etcd. That is rare.
		if got["etcd get namespaces"] < n/2 {
			delete(got, "etcd get namespaces")
		}
		if diff := cmp.Diff(want, got); diff != "" {
			return "requests (-want +got):\n" + diff
		}
		return ""
	})
}

// waitForCached waits until the watch cache has n Namespaces.
func waitForCached(t *testing.T, b *harness.Borough, n int) {
	t.Helper()
	poll.Eventually(t, func() string {
		list, err := b.Client(t).TenancyV1().Namespaces().List(t.Context(), metav1.ListOptions{ResourceVersion: "0"})
		if err != nil || len(list.Items) != n {
			return fmt.Sprintf("%d Namespaces, error %v", len(list.Items), err)
		}
		return ""
	})
}

var (
	apiRequests  = regexp.MustCompile(`(?m)^apiserver_request_total\{.*group="tenancy.borough.io",resource="(\w+)".*subresource="(\w*)",verb="(POST|PUT|PATCH|DELETE|GET)".*\} (\d+)$`)
	etcdRequests = regexp.MustCompile(`(?m)^etcd_request_duration_seconds_count\{group="tenancy.borough.io",operation="(create|get|update|delete|list)",resource="(\w+)"\} (\d+)$`)
)

// countRequests returns the number of requests to the server, except lists and
// watches, and of the server to etcd.
func countRequests(t *testing.T, b *harness.Borough) map[string]int {
	t.Helper()
	counts := map[string]int{}
	add := func(name, count string) {
		n, err := strconv.Atoi(count)
		if err != nil {
			t.Fatal(err)
		}
		counts[name] += n
	}
	metrics := b.HTTP(t).Do(t, "GET", "/metrics", nil).Body
	for _, m := range apiRequests.FindAllStringSubmatch(string(metrics), -1) {
		resource := m[1]
		if m[2] != "" {
			resource += "/" + m[2]
		}
		add(m[3]+" "+resource, m[4])
	}
	for _, m := range etcdRequests.FindAllStringSubmatch(string(metrics), -1) {
		add("etcd "+m[1]+" "+m[2], m[3])
	}
	if len(counts) == 0 {
		t.Fatalf("no requests in the metrics:\n%s", metrics)
	}
	return counts
}
