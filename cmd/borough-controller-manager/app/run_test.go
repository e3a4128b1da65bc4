// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	componentconfig "k8s.io/component-base/config"
	"k8s.io/klog/v2"

	"github.com/borough-io/borough/cmd/borough-controller-manager/app/options"
	"github.com/borough-io/borough/pkg/leader"
	"github.com/borough-io/borough/test/poll"
)

// api is a server without Namespaces. It serves Leases unless noLeases is set.
type api struct {
	*httptest.Server

	mu        sync.Mutex
	down      bool
	noLeases  bool
	forbidden bool // leases cannot be read
	stuck     bool // leases cannot be written
	lease     *coordinationv1.Lease
	version   int
	holders   []string // successive holders of the lease
}

func newAPI(t *testing.T) *api {
	a := &api{}
	a.Server = httptest.NewServer(a)
	t.Cleanup(a.Close)
	return a
}

func (a *api) set(f func()) {
	a.mu.Lock()
	defer a.mu.Unlock()
	f()
}

func (a *api) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	a.mu.Lock()
	down := a.down
	a.mu.Unlock()
	switch path := r.URL.Path; {
	case down:
		http.Error(w, "down", http.StatusServiceUnavailable)
	case path == "/apis/tenancy.borough.io/v1/namespaces" && r.URL.Query().Get("watch") == "":
		reply(w, `{"kind":"NamespaceList","apiVersion":"tenancy.borough.io/v1","metadata":{"resourceVersion":"1"},"items":[]}`)
	case path == "/apis/tenancy.borough.io/v1/namespaces" && r.URL.Query().Get("sendInitialEvents") != "":
		http.Error(w, "no streaming lists", http.StatusUnprocessableEntity)
	case path == "/apis/tenancy.borough.io/v1/namespaces":
		w.Header().Set("Content-Type", "application/json")
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	case strings.HasPrefix(path, "/apis/coordination.k8s.io/v1"):
		a.serveLeases(w, r)
	default:
		http.NotFound(w, r)
	}
}

func (a *api) serveLeases(w http.ResponseWriter, r *http.Request) {
	a.mu.Lock()
	defer a.mu.Unlock()
	switch {
	case a.noLeases:
		http.NotFound(w, r)
	case r.URL.Path == "/apis/coordination.k8s.io/v1":
		reply(w, `{"kind":"APIResourceList","groupVersion":"coordination.k8s.io/v1","resources":[]}`)
	case a.forbidden:
		http.Error(w, "no", http.StatusForbidden)
	case r.Method == http.MethodGet && a.lease == nil:
		http.NotFound(w, r)
	case r.Method == http.MethodGet:
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(a.lease)
	case a.stuck:
		http.Error(w, "no", http.StatusInternalServerError)
	default:
		lease := &coordinationv1.Lease{}
		if err := json.NewDecoder(r.Body).Decode(lease); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		if a.lease != nil && a.lease.ResourceVersion != lease.ResourceVersion {
			http.Error(w, "conflict", http.StatusConflict)
			return
		}
		a.version++
		lease.ResourceVersion = strconv.Itoa(a.version)
		holder := ""
		if lease.Spec.HolderIdentity != nil {
			holder = *lease.Spec.HolderIdentity
		}
		if len(a.holders) == 0 || a.holders[len(a.holders)-1] != holder {
			a.holders = append(a.holders, holder)
		}
		a.lease = lease
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(lease)
	}
}

func reply(w http.ResponseWriter, body string) {
	w.Header().Set("Content-Type", "application/json")
	_, _ = io.WriteString(w, body)
}

// process is a running controller manager.
type process struct {
	url   string
	stop  context.CancelFunc
	ended chan error
}

func start(t *testing.T, a *api, modify ...func(*options.Config)) *process {
	t.Helper()
	return startWith(t.Context(), t, a, modify...)
}

func startWith(ctx context.Context, t *testing.T, a *api, modify ...func(*options.Config)) *process {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	config := &options.Config{
		Client:         &rest.Config{Host: a.URL, QPS: -1, ContentConfig: rest.ContentConfig{ContentType: "application/json"}},
		Workers:        2,
		PurgeAPIGroups: []string{"tenancy.borough.io"},
		HTTPListener:   listener,
		LeaderElection: componentconfig.LeaderElectionConfiguration{
			// A leader that a busy machine holds up keeps the lease.
			LeaseDuration:     metav1.Duration{Duration: 2 * time.Minute},
			RenewDeadline:     metav1.Duration{Duration: 100 * time.Second},
			RetryPeriod:       metav1.Duration{Duration: 50 * time.Millisecond},
			ResourceLock:      resourcelock.LeasesResourceLock,
			ResourceName:      "lease",
			ResourceNamespace: "ns",
		},
	}
	for _, f := range modify {
		f(config)
	}
	ctx, cancel := context.WithCancel(ctx)
	p := &process{url: "http://" + listener.Addr().String(), stop: cancel, ended: make(chan error, 1)}
	go func() { p.ended <- Run(ctx, config) }()
	t.Cleanup(cancel)
	return p
}

func elect(config *options.Config) { config.LeaderElection.LeaderElect = true }

// get returns the body of a page, or the text of the error.
func (p *process) get(path string) string {
	response, err := http.Get(p.url + path)
	if err != nil {
		return err.Error()
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return err.Error()
	}
	return string(body)
}

// await returns the error that Run returned.
func (p *process) await(t *testing.T) error {
	t.Helper()
	select {
	case err := <-p.ended:
		return err
	case <-time.After(time.Minute):
		t.Fatal("Run has not returned")
		return nil
	}
}

func (p *process) eventuallyReady(t *testing.T) {
	t.Helper()
	poll.Eventually(t, func() string {
		if page := p.get("/readyz"); page != "ok" {
			return "/readyz: " + page
		}
		return ""
	})
}

func TestRun(t *testing.T) {
	a := newAPI(t)
	a.down = true
	p := start(t, a)
	poll.Eventually(t, func() string {
		if page := p.get("/readyz"); !strings.Contains(page, "the namespace informer has not synced yet") {
			return "/readyz: " + page
		}
		return ""
	})
	for _, path := range []string{"/healthz", "/livez"} {
		if got := p.get(path); got != "ok" {
			t.Errorf("%s: %s", path, got)
		}
	}
	a.set(func() { a.down = false })
	p.eventuallyReady(t)
	page := p.get("/metrics")
	for _, name := range []string{
		`workqueue_depth{name="namespace"}`, `workqueue_retries_total{name="namespace"}`, "rest_client_requests_total",
		"process_resident_memory_bytes", "borough_namespace_controller_oldest_termination_age_seconds",
		"borough_namespace_controller_termination_duration_seconds_count", `borough_namespace_controller_stuck_namespaces{reason="failure"}`,
	} {
		if !strings.Contains(page, "\n"+name) {
			t.Errorf("metric %s is missing", name)
		}
	}
	p.stop()
	if err := p.await(t); err != nil {
		t.Error(err)
	}
}

func TestRunCannotStart(t *testing.T) {
	a := newAPI(t)
	a.noLeases = true
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	for _, tc := range []struct {
		name   string
		modify func(*options.Config)
		want   string
	}{
		{"the server does not serve leases", elect, "pass --leader-elect=false"},
		{"the port is in use", func(config *options.Config) {
			config.HTTPListener.Close()
			config.HTTPListener, config.HTTPBindAddress = nil, taken.Addr().String()
		}, "--http-bind-address: listen tcp " + taken.Addr().String()},
		{"a certificate file does not exist", func(config *options.Config) {
			config.Client.TLSClientConfig = rest.TLSClientConfig{CAFile: "/does/not/exist"}
			config.Client.Host = "https://127.0.0.1:1"
		}, "/does/not/exist"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			err := start(t, a, tc.modify).await(t)
			if err == nil || !strings.Contains(err.Error(), tc.want) || strings.Contains(err.Error(), "\n") {
				t.Errorf("got %v, want one line with %q", err, tc.want)
			}
		})
	}
}

// TestNoRightToLease starts a replica with leader election for a standalone server, which
// gives the controller no right to Leases.
func TestNoRightToLease(t *testing.T) {
	a := newAPI(t)
	a.forbidden = true
	hinted := make(chan struct{})
	once := sync.OnceFunc(func() { close(hinted) })
	ctx := klog.NewContext(t.Context(), funcr.New(func(_, args string) {
		if strings.Contains(args, "if the server is standalone, pass --leader-elect=false") {
			once()
		}
	}, funcr.Options{}))
	p := startWith(ctx, t, a, elect)
	poll.Eventually(t, func() string {
		select {
		case <-hinted:
			return ""
		default:
			return "it has not logged what to do"
		}
	})
	p.stop()
	if err := p.await(t); err != nil {
		t.Error(err)
	}
}

// TestElection runs two replicas. One leads at a time, and both are ready.
func TestElection(t *testing.T) {
	a := newAPI(t)
	a.down = true // discovery fails at first
	first := start(t, a, elect)
	a.set(func() { a.down = false })
	holders := func() (n int) {
		a.set(func() { n = len(a.holders) })
		return n
	}
	describe := func() (s string) {
		a.set(func() { s = strings.Join(a.holders, ", then ") })
		return "the lease was held by " + s
	}
	heldBy := func(n int) {
		t.Helper()
		poll.Eventually(t, func() string {
			if holders() != n {
				return describe()
			}
			return ""
		})
	}
	heldBy(1)
	second := start(t, a, elect)
	first.eventuallyReady(t)
	second.eventuallyReady(t)

	first.stop()
	if err := first.await(t); err != nil {
		t.Error(err)
	}
	// The first leader released the lease, then the second acquired it.
	heldBy(3)
	if a.holders[1] != "" || a.holders[2] == a.holders[0] {
		t.Error(describe())
	}

	// A replica that does not lead ends without an error, too.
	third := start(t, a, elect)
	third.eventuallyReady(t)
	third.stop()
	if err := third.await(t); err != nil {
		t.Error(err)
	}
	if n := holders(); n != 3 {
		t.Error(describe())
	}
	second.stop()
	if err := second.await(t); err != nil {
		t.Error(err)
	}
}

// TestLostLease prevents a leader from renewing the lease.
func TestLostLease(t *testing.T) {
	a := newAPI(t)
	p := start(t, a, elect, func(config *options.Config) {
		config.LeaderElection.LeaseDuration.Duration = 2 * time.Second
		config.LeaderElection.RenewDeadline.Duration = time.Second
	})
	poll.Eventually(t, func() (reason string) {
		a.set(func() {
			if len(a.holders) == 0 {
				reason = "the lease is not held"
			}
			a.stuck = reason == ""
		})
		return reason
	})
	if err := p.await(t); !errors.Is(err, leader.ErrLost) {
		t.Errorf("got %v without a lease", err)
	}
}
