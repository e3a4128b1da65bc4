// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sync/errgroup"

	"github.com/borough-io/borough/test/harness"
	"github.com/borough-io/borough/test/poll"
)

var (
	listPods    = flag.Int("pods", 20, "number of Pods that TestMemoryOfLists creates")
	listClients = flag.Int("clients", 10, "number of clients that list them concurrently")
	listEtcd    = flag.String("etcd-servers", "", "an empty etcd for TestMemoryOfLists and TestEtcdSize, instead of an embedded etcd")
)

const tableType = "application/json;as=Table;v=v1;g=meta.k8s.io"

// TestMemoryOfLists lists Pods concurrently, in each form, and logs the memory that
// the server needs. It measures what docs/capacity.md says.
func TestMemoryOfLists(t *testing.T) {
	t.Parallel()
	b := harness.New(t)
	start := func() {
		t.Helper()
		var flags []string
		if *listEtcd != "" {
			flags = append(flags, "--etcd-servers="+*listEtcd)
		}
		if err := b.StartServer(t.Context(), flags...); err != nil {
			t.Fatal(err)
		}
	}
	stop := func() {
		t.Helper()
		if err := b.Server.Stop(); err != nil {
			t.Fatal(err)
		}
	}
	start()
	t.Logf("without Pods: %s", sizes(t, b))
	size := createPods(t, b, *listPods)
	t.Logf("after the creation of %d Pods, of %d bytes as JSON: %s", *listPods, size, sizes(t, b))
	stop()
	for _, form := range []struct{ name, accept, encoding, query string }{
		{"JSON", "application/json", "", ""},
		{"protobuf", "application/vnd.kubernetes.protobuf", "", ""},
		{"Table", tableType, "", ""},
		{"Table, compressed", tableType, "gzip", ""},
		{"Table with objects", tableType, "", "?includeObject=Object"},
	} {
		start()
		client := b.HTTP(t)
		poll.Eventually(t, func() string { // the watch cache is filled
			if answer := client.Do(t, http.MethodGet, api+"/pods?resourceVersion=0&fieldSelector=metadata.name=none", nil); answer.Code != http.StatusOK {
				return answer.String()
			}
			return ""
		})
		before := sizes(t, b)
		list := func() int64 {
			response := client.Open(t, http.MethodGet, api+"/pods"+form.query, nil, "Accept", form.accept, "Accept-Encoding", form.encoding)
			defer response.Body.Close()
			n, err := io.Copy(io.Discard, response.Body)
			if err != nil || response.StatusCode != http.StatusOK {
				t.Errorf("%s: got %s, %v", form.name, response.Status, err)
			}
			return n
		}
		length := list()
		one := sizes(t, b)
		for range 3 {
			var listing sync.WaitGroup
			for range *listClients {
				listing.Go(func() { list() })
			}
			listing.Wait()
		}
		t.Logf("%s, of %d bytes: before: %s; after one: %s; after three times %d at once: %s", form.name, length, before, one, *listClients, sizes(t, b))
		stop()
	}
}

// createPods creates Pods and gives them the status of running ones, as an agent
// does. It returns the size of one as JSON.
func createPods(t *testing.T, b *harness.Borough, n int) int {
	const spec = `{"apiVersion":"tenancy.borough.io/v1","kind":"Pod","metadata":{"name":"web-%d","labels":{"app":"web","pod-template-hash":"6d4b75cb6d"},` +
		`"annotations":{"example.com/checksum":"9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"},` +
		`"ownerReferences":[{"apiVersion":"apps/v1","kind":"ReplicaSet","name":"web-6d4b75cb6d","uid":"8f9e4a3e-7d9b-4f57-9f54-7a1c6a2f3b10","controller":true}]},` +
		`"spec":{"nodeName":"node-%d","containers":[` +
		`{"name":"web","image":"registry.example.com/team/web:1.27.3","ports":[{"name":"http","containerPort":8080}],` +
		`"env":[{"name":"A","value":"1"},{"name":"POD","valueFrom":{"fieldRef":{"fieldPath":"metadata.name"}}}],` +
		`"resources":{"requests":{"cpu":"100m","memory":"128Mi"},"limits":{"cpu":"500m","memory":"256Mi"}},` +
		`"readinessProbe":{"httpGet":{"path":"/ready","port":"http"}},"volumeMounts":[{"name":"config","mountPath":"/etc/web"}]},` +
		`{"name":"proxy","image":"registry.example.com/team/proxy:2.3.1","resources":{"requests":{"cpu":"50m","memory":"64Mi"}}}],` +
		`"volumes":[{"name":"config","configMap":{"name":"web"}}]}}`
	const status = `{"status":{"phase":"Running","podIP":"10.1.2.3","podIPs":[{"ip":"10.1.2.3"}],"hostIP":"10.0.0.1","startTime":"2026-11-01T10:00:00Z","conditions":[` +
		`{"type":"Initialized","status":"True","lastTransitionTime":"2026-11-01T10:00:00Z"},{"type":"Ready","status":"True","lastTransitionTime":"2026-11-01T10:00:05Z"},` +
		`{"type":"ContainersReady","status":"True","lastTransitionTime":"2026-11-01T10:00:05Z"},{"type":"PodScheduled","status":"True","lastTransitionTime":"2026-11-01T10:00:00Z"}],` +
		`"containerStatuses":[{"name":"web","ready":true,"started":true,"restartCount":1,"image":"registry.example.com/team/web:1.27.3","imageID":"registry.example.com/team/web@sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08","containerID":"containerd://9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08","state":{"running":{"startedAt":"2026-11-01T10:00:04Z"}}},` +
		`{"name":"proxy","ready":true,"started":true,"restartCount":0,"image":"registry.example.com/team/proxy:2.3.1","imageID":"registry.example.com/team/proxy@sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08","containerID":"containerd://9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08","state":{"running":{"startedAt":"2026-11-01T10:00:03Z"}}}]}}`
	client := b.HTTP(t)
	concurrently(t, n, func(i int) error {
		path := api + "/namespaces/default/pods"
		if answer := client.Do(t, http.MethodPost, path, fmt.Appendf(nil, spec, i, i%100), "Content-Type", "application/json"); answer.Code != http.StatusCreated {
			return fmt.Errorf("create a Pod: %v", answer)
		}
		if answer := client.Do(t, http.MethodPatch, fmt.Sprintf("%s/web-%d/status", path, i), []byte(status), "Content-Type", "application/merge-patch+json"); answer.Code != http.StatusOK {
			return fmt.Errorf("update its status: %v", answer)
		}
		return nil
	})
	return len(client.Do(t, http.MethodGet, api+"/namespaces/default/pods/web-0", nil).Body)
}

// concurrently calls a function with each number below n, some at a time.
func concurrently(t *testing.T, n int, f func(i int) error) {
	t.Helper()
	var group errgroup.Group
	group.SetLimit(4 * runtime.NumCPU())
	for i := range n {
		group.Go(func() error { return f(i) })
	}
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
}

var residentLines = regexp.MustCompile(`(?m)^(VmHWM|RssAnon|RssFile):\s+(\d+) kB$`)

// sizes returns the resident memory of the server: the maximum until now
// (VmHWM), and the current memory without (RssAnon) and of mapped files.
func sizes(t *testing.T, b *harness.Borough) string {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", b.Server.PID()))
	if err != nil {
		return "unknown"
	}
	var lines []string
	for _, match := range residentLines.FindAllSubmatch(status, -1) {
		kib, err := strconv.Atoi(string(match[2]))
		if err != nil {
			t.Fatal(err)
		}
		lines = append(lines, fmt.Sprintf("%s %d MiB", match[1], kib>>10))
	}
	return strings.Join(lines, ", ")
}
