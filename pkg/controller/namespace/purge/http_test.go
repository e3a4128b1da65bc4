// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package purge

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"

	v1 "github.com/borough-io/borough/pkg/apis/tenancy/v1"
	tenancyv1 "github.com/borough-io/borough/pkg/generated/clientset/versioned/typed/tenancy/v1"
)

// TestPurgeRequest shows what a purge is on the wire: a server has to refuse a field that it
// does not know.
func TestPurgeRequest(t *testing.T) {
	var got *http.Request
	var body string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		got, body = r, string(b)
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"kind":"NamespacePurge","apiVersion":"tenancy.borough.io/v1","status":{"purged":[{"resource":"pods","removed":2,"held":1}]}}`)
	}))
	defer server.Close()
	config := &rest.Config{Host: server.URL, ContentConfig: rest.ContentConfig{ContentType: "application/json"}}
	client, err := tenancyv1.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	status, err := New(client, nil, nil, nil).createPurge(t.Context(), incarnation{"ns", "uid-1"}, false)
	if err != nil {
		t.Fatal(err)
	}
	if got.Method != http.MethodPost || got.URL.String() != "/apis/tenancy.borough.io/v1/namespaces/ns/namespacepurges?fieldValidation=Strict" {
		t.Errorf("%s %s", got.Method, got.URL)
	}
	if want := `"spec":{"namespaceUID":"uid-1","force":false}`; !strings.Contains(body, want) {
		t.Errorf("body %s, want %s", body, want)
	}
	want := &v1.NamespacePurgeStatus{Purged: []v1.PurgedResource{{Resource: "pods", Removed: 2, Held: 1}}}
	if diff := cmp.Diff(want, status); diff != "" {
		t.Errorf("status (-want +got):\n%s", diff)
	}
}

const ownResources = `{"kind":"APIResourceList","groupVersion":"tenancy.borough.io/v1","resources":[
	{"name":"namespaces","namespaced":false,"kind":"Namespace","verbs":["delete","list","watch"]},
	{"name":"limitranges","namespaced":true,"kind":"LimitRange","verbs":["delete","list"]},
	{"name":"pods","namespaced":true,"kind":"Pod","verbs":["delete","deletecollection","list","watch"]},
	{"name":"pods/status","namespaced":true,"kind":"Pod","verbs":["get","patch","update"]},
	{"name":"blind","namespaced":true,"kind":"Blind","verbs":["delete"]},
	{"name":"verdicts","namespaced":true,"kind":"Verdict","verbs":["create"]}]}`

var ownWanted = []Resource{
	{GroupVersionResource: limitRanges, Delete: true},
	{GroupVersionResource: pods, Delete: true, DeleteCollection: true, Watch: true},
}

// discoveryServer answers with the JSON by path, and with 503 to a path that
// has none.
func discoveryServer(t *testing.T, byPath map[string]string) (*discovery.DiscoveryClient, *atomic.Int32) {
	requests := new(atomic.Int32)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		requests.Add(1)
		body, ok := byPath[r.URL.Path]
		if !ok {
			http.Error(w, "no", http.StatusServiceUnavailable)
			return
		}
		if body == "" {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, body)
	}))
	t.Cleanup(server.Close)
	client, err := discovery.NewDiscoveryClientForConfig(&rest.Config{Host: server.URL, QPS: -1})
	if err != nil {
		t.Fatal(err)
	}
	return client, requests
}

func group(name string) string {
	gv := `{"groupVersion":"` + name + `/v1","version":"v1"}`
	return `{"name":"` + name + `","versions":[` + gv + `],"preferredVersion":` + gv + `}`
}

func groups(names ...string) string {
	var all []string
	for _, name := range names {
		all = append(all, group(name))
	}
	return `{"kind":"APIGroupList","apiVersion":"v1","groups":[` + strings.Join(all, ",") + `]}`
}

func TestDiscover(t *testing.T) {
	things := `{"kind":"APIResourceList","groupVersion":"example.com/v1","resources":[
		{"name":"things","namespaced":true,"kind":"Thing","verbs":["deletecollection","list"]}]}`
	wantedThings := Resource{GroupVersionResource: v1.SchemeGroupVersion.WithResource("things"), DeleteCollection: true}
	wantedThings.Group = "example.com"
	for _, tc := range []struct {
		name     string
		groups   []string
		byPath   map[string]string
		want     []Resource
		failure  string
		requests int32
	}{
		{
			name: "one cheap request for the own group", groups: []string{"tenancy.borough.io"},
			byPath: map[string]string{"/apis/tenancy.borough.io/v1": ownResources},
			want:   ownWanted, requests: 1,
		},
		{
			name: "the own group cannot be discovered", groups: []string{"tenancy.borough.io"},
			failure: "unable to retrieve the complete list of server APIs: tenancy.borough.io/v1: ", requests: 1,
		},
		{
			name: "the own group is not there", groups: []string{"tenancy.borough.io"},
			byPath:  map[string]string{"/apis/tenancy.borough.io/v1": ""},
			failure: "tenancy.borough.io/v1: the server could not find the requested resource", requests: 1,
		},
		{
			name: "all groups", groups: []string{AllGroups},
			byPath: map[string]string{
				"/api": "", "/apis": groups("example.com", "tenancy.borough.io"),
				"/apis/tenancy.borough.io/v1": ownResources, "/apis/example.com/v1": things,
			},
			want: append([]Resource{wantedThings}, ownWanted...), requests: 4,
		},
		{
			name: "a group that is not purged fails", groups: []string{"tenancy.borough.io", "absent.example.com"},
			byPath: map[string]string{
				"/api": "", "/apis": groups("broken.example.com", "example.com", "tenancy.borough.io"),
				"/apis/tenancy.borough.io/v1": ownResources, "/apis/example.com/v1": things,
			},
			want: ownWanted, requests: 5,
		},
		{
			name: "a group fails, the others are there", groups: []string{AllGroups},
			byPath: map[string]string{
				"/api": "", "/apis": groups("broken.example.com", "tenancy.borough.io"),
				"/apis/tenancy.borough.io/v1": ownResources,
			},
			want: ownWanted, failure: "broken.example.com/v1: ", requests: 4,
		},
		{
			name: "an aggregator that does not know the own group yet", groups: []string{AllGroups},
			byPath:  map[string]string{"/api": "", "/apis": groups("example.com"), "/apis/example.com/v1": things},
			want:    []Resource{wantedThings},
			failure: "tenancy.borough.io/v1: not served", requests: 3,
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			client, requests := discoveryServer(t, tc.byPath)
			got := NewDiscoverer(client, tc.groups...).Discover(t.Context(), time.Now())
			if diff := cmp.Diff(tc.want, got.Resources); diff != "" {
				t.Errorf("resources (-want +got):\n%s", diff)
			}
			switch {
			case tc.failure == "" && got.Failure != nil:
				t.Errorf("failed: %v", got.Failure)
			case tc.failure != "" && (got.Failure == nil || !strings.Contains(got.Failure.Error(), tc.failure)):
				t.Errorf("got %v, want %q", got.Failure, tc.failure)
			}
			if got := requests.Load(); got != tc.requests {
				t.Errorf("%d requests, want %d", got, tc.requests)
			}
		})
	}
}

// TestDiscoverStandalone shows by what a standalone server is recognized.
func TestDiscoverStandalone(t *testing.T) {
	requests := `{"name":"namespacerequests","namespaced":false,"kind":"NamespaceRequest","verbs":["create"]},`
	for resources, want := range map[string]bool{
		ownResources: false,
		strings.Replace(ownResources, `{"name":"namespaces"`, requests+`{"name":"namespaces"`, 1): true,
	} {
		client, _ := discoveryServer(t, map[string]string{"/apis/tenancy.borough.io/v1": resources})
		got := NewDiscoverer(client, "tenancy.borough.io").Discover(t.Context(), time.Now())
		if got.Standalone != want || !cmp.Equal(got.Resources, ownWanted) {
			t.Errorf("got %+v of %s", got, resources)
		}
	}
}

func TestDiscoverUnparsable(t *testing.T) {
	client, _ := discoveryServer(t, map[string]string{
		"/apis/tenancy.borough.io/v1": strings.Replace(ownResources, `"groupVersion":"tenancy.borough.io/v1"`, `"groupVersion":"a/b/c"`, 1),
	})
	got := NewDiscoverer(client, "tenancy.borough.io").Discover(t.Context(), time.Now())
	if got.ParseFailure == nil || got.Failure != nil || len(got.Resources) > 0 {
		t.Errorf("got %+v", got)
	}
}

// TestDiscoverShares shows when one look is good enough for another purge.
func TestDiscoverShares(t *testing.T) {
	byPath := map[string]string{"/apis/tenancy.borough.io/v1": ownResources}
	client, requests := discoveryServer(t, byPath)
	d := NewDiscoverer(client, "tenancy.borough.io")
	before := time.Now()
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() {
			if got := d.Discover(t.Context(), before); len(got.Resources) != 2 {
				t.Errorf("got %+v", got)
			}
		})
	}
	all.Wait()
	if got := requests.Load(); got != 1 {
		t.Errorf("%d requests for purges that began before the first", got)
	}
	d.Discover(t.Context(), time.Now())
	if got := requests.Load(); got != 2 {
		t.Errorf("%d requests after a purge that began later", got)
	}

	// A failure is not remembered, nor does it hide what was known.
	delete(byPath, "/apis/tenancy.borough.io/v1")
	later := time.Now()
	if got := d.Discover(t.Context(), later); got.Failure == nil {
		t.Error("no failure")
	}
	byPath["/apis/tenancy.borough.io/v1"] = ownResources
	if got := d.Discover(t.Context(), later); got.Failure != nil {
		t.Error(got.Failure)
	}
}

// TestDiscoverWaits sends a request that hangs. An older pass does not wait for it, nor does
// one whose context ends. The request does not end with that one, because others share it.
func TestDiscoverWaits(t *testing.T) {
	var requests atomic.Int32
	var hangs atomic.Bool
	entered, release := make(chan struct{}, 1), make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		requests.Add(1)
		if hangs.Load() {
			entered <- struct{}{}
			<-release
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, ownResources)
	}))
	t.Cleanup(server.Close)
	client, err := discovery.NewDiscoveryClientForConfig(&rest.Config{Host: server.URL, QPS: -1})
	if err != nil {
		t.Fatal(err)
	}
	d := NewDiscoverer(client, v1.GroupName)
	discover := func(ctx context.Context, since time.Time) <-chan Discovered {
		found := make(chan Discovered, 1)
		go func() { found <- d.Discover(ctx, since) }()
		return found
	}
	await := func(what string, found <-chan Discovered) (got Discovered) {
		t.Helper()
		select {
		case got = <-found:
		case <-time.After(time.Minute):
			t.Errorf("%s waits for the request of another one", what)
		}
		return got
	}

	old := time.Now()
	if got := d.Discover(t.Context(), old); len(got.Resources) != 2 {
		t.Errorf("got %+v", got)
	}
	hangs.Store(true)
	now := time.Now()
	ctx, cancel := context.WithCancel(t.Context())
	canceled := discover(ctx, now)
	<-entered
	shares := discover(t.Context(), now)
	if got := await("an older pass", discover(t.Context(), old)); len(got.Resources) != 2 {
		t.Errorf("got %+v", got)
	}
	cancel()
	if got := await("a pass whose context has ended", canceled); !errors.Is(got.Failure, context.Canceled) {
		t.Errorf("got %+v", got)
	}
	hangs.Store(false)
	close(release)
	if got := await("a pass that shares the request", shares); len(got.Resources) != 2 {
		t.Errorf("got %+v", got)
	}
	if got := requests.Load(); got != 2 {
		t.Errorf("%d requests, want 2", got)
	}
}
