// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"go.etcd.io/etcd/server/v3/embed"

	v1 "github.com/borough-io/borough/pkg/apis/tenancy/v1"
	"github.com/borough-io/borough/pkg/storage/storagetest"
	"github.com/borough-io/borough/test/harness"
)

// TestUpdatesOfLargePods updates a large Pod more often than its versions fit into etcd.
func TestUpdatesOfLargePods(t *testing.T) {
	t.Parallel()
	const quotaBytes, podBytes = 64 << 20, 1_400_000
	for name, start := range map[string]func(t *testing.T) []*harness.Borough{
		"the embedded etcd": func(t *testing.T) []*harness.Borough {
			b := harness.New(t)
			if err := b.StartServer(t.Context(), fmt.Sprint("--etcd-quota-backend-bytes=", quotaBytes)); err != nil {
				t.Fatal(err)
			}
			return []*harness.Borough{b}
		},
		"two servers": func(t *testing.T) []*harness.Borough {
			endpoint := storagetest.StartGRPC(t, func(c *embed.Config) { c.QuotaBackendBytes = quotaBytes })
			first, second, _ := startTwo(t, endpoint, nil)
			return []*harness.Borough{first, second}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			servers := start(t)
			ns := newNamespace(t, servers[0])
			createPod(t, servers[0], ns, newPod("large", func(p *v1.Pod) {
				p.Spec.Containers[0].Args = []string{strings.Repeat("x", podBytes)}
			}))
			var clients []harness.HTTP
			for _, b := range servers {
				clients = append(clients, b.HTTP(t))
			}
			for i := range 3 * quotaBytes / podBytes {
				patch := fmt.Appendf(nil, `{"metadata":{"labels":{"version":"%d"}}}`, i)
				answer := clients[i%len(clients)].Do(t, http.MethodPatch, api+"/namespaces/"+ns+"/pods/large", patch, "Content-Type", "application/merge-patch+json")
				if answer.Code != http.StatusOK {
					t.Fatalf("update %d: %v", i, answer)
				}
			}
			for _, b := range servers {
				createPod(t, b, newNamespace(t, b), newPod("other"))
			}
		})
	}
}
