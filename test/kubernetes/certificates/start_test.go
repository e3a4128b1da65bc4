// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package certificates

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/borough-io/borough/test/kubernetes/testcluster"
)

// TestStart starts a server again in a cluster that is not as it should be.
func TestStart(t *testing.T) {
	cluster := testcluster.New(t, testcluster.Options{Etcd: testcluster.EtcdOptions{Unsafe: true}, NoControllerManager: true})
	d := deploy(t, cluster)
	t.Run("insecureSkipTLSVerify", d.testInsecureSkipTLSVerify)
	t.Run("before the cluster", d.testBeforeCluster)
}

// testInsecureSkipTLSVerify restarts a server while the APIService has
// insecureSkipTLSVerify, with which kube-apiserver rejects a caBundle.
func (d *deployment) testInsecureSkipTLSVerify(t *testing.T) {
	d.patchAPIService(t, map[string]any{"insecureSkipTLSVerify": true, "caBundle": nil})
	restarted := d.servers[0]
	restarted.stop(t)
	restarted.start(t)
	await(t, "restarted server", func(ctx context.Context) error {
		code, body, err := restarted.get(ctx, "/readyz")
		if err == nil && code != http.StatusOK {
			err = fmt.Errorf("/readyz answers %d: %s", code, body)
		}
		return err
	})
	d.awaitAPI(t)
	if got := strings.Count(restarted.process.Output(), "insecureSkipTLSVerify"); got != 1 {
		t.Errorf("the restarted server has logged insecureSkipTLSVerify %d times", got)
	}

	d.patchAPIService(t, map[string]any{"insecureSkipTLSVerify": nil})
	// If the caBundle gets the CAs of both servers, one of them keeps its certificate, which
	// is trusted, for a minute more: kube-apiserver has time to load the CA of the other.
	await(t, "servers to be in step", d.inStep)
	d.awaitAPI(t)
}

// testBeforeCluster starts a server while kube-apiserver does not run.
func (d *deployment) testBeforeCluster(t *testing.T) {
	restarted := d.servers[0]
	restarted.stop(t)
	d.cluster.APIServer.Kill()
	restarted.start(t)
	await(t, "server to say what it waits for", func(ctx context.Context) error {
		_, body, err := restarted.get(ctx, "/readyz?verbose")
		if err == nil && !strings.Contains(body, "[-]serving-certificate failed") {
			err = fmt.Errorf("/readyz answers %s", body)
		}
		return err
	})
	if err := d.cluster.StartAPIServer(t.Context()); err != nil {
		t.Fatal(err)
	}
	await(t, "server", func(ctx context.Context) error { return d.ready(ctx, restarted.address) })
	d.awaitAPI(t)
	// While kube-apiserver starts, requests can fail for other reasons.
	var waits []string
	for line := range strings.Lines(restarted.process.Output()) {
		if strings.Contains(line, `"Failed to update the serving certificate, will retry until it succeeds" err="read the APIService: Get `) &&
			strings.Contains(line, "connection refused") {
			waits = append(waits, line)
		}
	}
	if len(waits) != 1 {
		t.Errorf("the server has logged %d times that it waits: %q", len(waits), waits)
	}
}
