// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package ha

import (
	"net/http"
	"path/filepath"
	"testing"

	"github.com/borough-io/borough/test/harness"
	"github.com/borough-io/borough/test/kubernetes/testcluster"
	"github.com/borough-io/borough/test/poll"
)

// TestNoMajority kills two of three members of etcd. The third one ends all watches, so watch
// caches cannot be read any more. The cluster can still delete its namespaces.
func TestNoMajority(t *testing.T) {
	t.Parallel()
	cluster := testcluster.New(t, testcluster.Options{Etcd: testcluster.EtcdOptions{Unsafe: true}})
	etcd := testcluster.StartEtcdForTest(t, filepath.Join(cluster.Dir, "borough-etcd"), testcluster.EtcdOptions{Members: 3, Unsafe: true})
	borough := cluster.NewBorough(t, testcluster.BoroughOptions{Etcd: etcd})
	kubectl := cluster.Kubectl(t)
	kubectl.Run(t, "create", "namespace", "before")

	for _, member := range etcd.Members[1:] {
		member.Process.Kill()
	}
	server := harness.NewHTTP(t, borough.Servers[0].Direct(cluster.AdminConfig()))
	for _, resource := range []string{"pods", "limitranges", "resourcequotas"} {
		path := "/apis/tenancy.borough.io/v1/namespaces/before/" + resource + "?resourceVersion=0&labelSelector=a"
		poll.Eventually(t, func() string { // the caches try for 30 seconds
			if answer := server.Do(t, http.MethodGet, path, nil); answer.Code != http.StatusTooManyRequests {
				return "a list of " + resource + " of any revision: " + answer.String()
			}
			return ""
		})
	}
	kubectl.Run(t, "delete", "namespace", "before", "--timeout="+timeout.String())
	kubectl.Run(t, "create", "namespace", "during")
	kubectl.Run(t, "delete", "namespace", "during", "--timeout="+timeout.String())

	for _, member := range etcd.Members[1:] {
		if err := member.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	poll.Eventually(t, func() string {
		answer := server.Do(t, http.MethodGet, "/apis/tenancy.borough.io/v1/pods?resourceVersion=0", nil)
		if answer.Code != http.StatusOK {
			return "a list after etcd has a majority again: " + answer.String()
		}
		return ""
	})
}
