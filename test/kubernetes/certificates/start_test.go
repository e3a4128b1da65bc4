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

// TestInsecureSkipTLSVerify restarts a server while the APIService has
// insecureSkipTLSVerify, with which kube-apiserver rejects a caBundle.
func TestInsecureSkipTLSVerify(t *testing.T) {
	cluster := testcluster.New(t, testcluster.Options{Etcd: testcluster.EtcdOptions{Unsafe: true}, NoControllerManager: true})
	d := deploy(t, cluster, 2)
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
	await(t, "servers to be in step", d.inStep)
	d.awaitAPI(t)
}
