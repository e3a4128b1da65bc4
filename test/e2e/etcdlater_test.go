// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"sigs.k8s.io/yaml"

	"github.com/borough-io/borough/pkg/storage/storagetest"
	"github.com/borough-io/borough/test/harness"
	"github.com/borough-io/borough/test/harness/etcdproxy"
)

// probePaths returns the paths of the probes of the manifests.
func probePaths(t *testing.T) (liveness, readiness string) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(harness.Root, "artifacts", "deploy", "base", "apiserver", "deployment.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var deployment appsv1.Deployment
	if err := yaml.UnmarshalStrict(data, &deployment); err != nil {
		t.Fatalf("read the Deployment: %v", err)
	}
	container := deployment.Spec.Template.Spec.Containers[0]
	if container.StartupProbe != nil {
		t.Error("a server that waits longer than the startup probe allows would be restarted")
	}
	return container.LivenessProbe.HTTPGet.Path, container.ReadinessProbe.HTTPGet.Path
}

// TestEtcdLater starts a server before its etcd. The server waits for it, says so, and
// is ready when etcd is there. For the probes of the manifests it is alive, but not
// ready before it has reached etcd for the first time.
func TestEtcdLater(t *testing.T) {
	t.Parallel()
	liveness, readiness := probePaths(t)
	proxy, err := etcdproxy.New(storagetest.StartGRPC(t), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := proxy.Close(); err != nil {
			t.Error(err)
		}
	})
	if err := proxy.Cut(); err != nil {
		t.Fatal(err)
	}
	b := harness.New(t)
	began := time.Now()
	if err := b.StartServerUntil(t.Context(), liveness, "--etcd-servers="+proxy.Endpoint()); err != nil {
		t.Fatal(err)
	}
	http := b.HTTP(t)
	for path, want := range map[string]string{
		"/livez":               "[-]etcd failed",
		"/readyz":              "[-]etcd failed",
		readiness:              "[-]etcd-reached failed",
		"/readyz/etcd":         proxy.Endpoint() + " does not answer",
		"/readyz/etcd-reached": "connection refused",
	} {
		answer := http.Do(t, "GET", path, nil)
		wantAnswer(t, answer, 500)
		wantContains(t, string(answer.Body), want)
	}
	wantAnswer(t, http.Do(t, "GET", api, nil), 200) // discovery
	// Without the policy, users are neither allowed nor denied anything.
	wantContains(t, string(http.Do(t, "GET", "/readyz", nil).Body), "[-]rbac-index failed")
	// That includes the right to impersonate another one.
	impersonator := harness.NewHTTP(t, impersonate(loadKubeconfig(t, issue(t, b, "--user=bob")), "alice"))
	for _, user := range []harness.HTTP{as(t, b, "alice"), impersonator} {
		for _, path := range []string{"/namespaces/x/pods", "/namespaces?watch=true"} {
			answer := wantAnswer(t, user.Do(t, "GET", api+path, nil), 503)
			wantContains(t, string(answer.Body), "the RBAC objects have not been read yet", `"retryAfterSeconds":1`)
			wantEqual(t, "Retry-After", answer.Header.Get("Retry-After"), "1")
		}
	}
	// At once, and every 30 seconds.
	lines, most := strings.Count(b.Server.Output(), "Waiting for etcd"), 1+int(time.Since(began)/(30*time.Second))
	if lines < 1 || lines > most {
		t.Errorf("%d lines say that the server waits, want 1 to %d", lines, most)
	}
	wantContains(t, b.Server.Output(), proxy.Endpoint()+" does not answer: ")

	if err := proxy.Serve(); err != nil {
		t.Fatal(err)
	}
	if err := b.AwaitServer(t.Context(), "/readyz"); err != nil {
		t.Fatal(err)
	}
	createPod(t, b, newNamespace(t, b), newPod("p"))

	// From then on, readiness does not depend on etcd.
	if err := proxy.Cut(); err != nil {
		t.Fatal(err)
	}
	wantAnswer(t, http.Do(t, "GET", "/readyz", nil), 500)
	for _, probe := range []string{liveness, readiness} {
		wantAnswer(t, http.Do(t, "GET", probe, nil), 200)
	}
	if err := proxy.Serve(); err != nil {
		t.Fatal(err)
	}
}

// TestMemberDown starts a server while one of two members of etcd is down. Each scrape has
// the size of the database, which an alert is about.
func TestMemberDown(t *testing.T) {
	t.Parallel()
	b := harness.New(t)
	if err := b.StartServer(t.Context(), "--etcd-servers=http://127.0.0.1:1,"+storagetest.StartGRPC(t)); err != nil {
		t.Fatal(err)
	}
	http := b.HTTP(t)
	for range 10 {
		answer := wantAnswer(t, http.Do(t, "GET", "/metrics", nil), 200)
		wantContains(t, string(answer.Body), "\napiserver_storage_size_bytes{")
	}
}
