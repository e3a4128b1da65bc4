// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/client-go/rest"
)

func TestNoFaults(t *testing.T) {
	for check, f := range newFakeCluster(t).examine(t) {
		if f.Status != OK {
			t.Errorf("%s: %+v", check, f)
		}
	}
}

// want is what a finding has: a status, and parts of its texts.
type want struct {
	status       Status
	message, fix string
}

// findingsCase makes one change to the cluster. All checks that are not in want are ok.
type findingsCase struct {
	name string
	do   func(*testing.T, *fakeCluster)
	want map[string]want
}

func testFindings(t *testing.T, cases []findingsCase) {
	t.Helper()
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			cluster := newFakeCluster(t)
			tc.do(t, cluster)
			for check, got := range cluster.examine(t) {
				want, named := tc.want[check]
				if rest, all := tc.want["*"]; !named && all {
					want = rest
				} else if !named {
					want.status = OK
				}
				if got.Status != want.status || !strings.Contains(got.Message, want.message) || !strings.Contains(got.Fix, want.fix) {
					t.Errorf("got  %+v\nwant %+v", got, want)
				}
			}
		})
	}
}

// TestRecheck changes the cluster while its checks are made for the first time.
func TestRecheck(t *testing.T) {
	noResponse := fakeAnswer{status: 503, body: "error trying to reach service: EOF"}
	for _, tc := range []struct {
		name   string
		change func(*fakeCluster)
		want   map[string]Status // of checks that are not ok
	}{
		{"the fault is over", func(c *fakeCluster) { c.answers[groupPath] = fakeAnswer{body: resources("namespaces")} }, nil},
		{"another fault hides it", func(c *fakeCluster) { c.unavailable("FailedDiscoveryCheck", "timeout") },
			map[string]Status{"APIService available": Fault, checkFrontProxy: Skipped, "etcd": Skipped}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			cluster := newFakeCluster(t)
			cluster.answers[groupPath] = noResponse
			change := sync.OnceFunc(func() { tc.change(cluster) })
			var mu sync.Mutex
			findings := examine(t, http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
				mu.Lock()
				defer mu.Unlock()
				cluster.ServeHTTP(w, req)
				if req.URL.Path == groupPath {
					change()
				}
			}), time.Nanosecond)
			for check, got := range findings {
				want, named := tc.want[check]
				if !named {
					want = OK
				}
				if got.Status != want {
					t.Errorf("got %+v, want status %s", got, want)
				}
			}
		})
	}
}

func TestUnreachable(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler())
	server.Close()
	findings, err := Examine(t.Context(), &rest.Config{Host: server.URL}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if Faults(findings) != 1 || findings[0].Status != Fault || !strings.Contains(findings[0].Message, "refused") {
		t.Errorf("got %+v, want one fault, of the check cluster", findings)
	}
}

func TestCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { cancel() }))
	defer server.Close()
	if findings, err := Examine(ctx, &rest.Config{Host: server.URL}, Options{}); !errors.Is(err, context.Canceled) {
		t.Errorf("got %+v, %v", findings, err)
	}
}
