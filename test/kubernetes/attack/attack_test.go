// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

// Package attack sends the hostile requests of test/attack through a real
// kube-apiserver, as tenants with the roles in artifacts.
package attack

import (
	"flag"
	"math/rand/v2"
	"path/filepath"
	"testing"

	"k8s.io/client-go/rest"

	"github.com/borough-io/borough/test/attack"
	"github.com/borough-io/borough/test/harness"
	"github.com/borough-io/borough/test/kubernetes/testcluster"
	"github.com/borough-io/borough/test/poll"
)

var (
	seed   = flag.Uint64("seed", rand.Uint64(), "the seed of the random choices")
	every  = flag.Int("every", 40, "send one of so many similar requests")
	random = flag.Int("random", 100, "the number of random requests")
	only   = flag.String("only", "", "the class of the requests to send; empty is all")
	cpu    = flag.Bool("cpu", false, "bound the CPU time of a request as well")
)

func TestMain(m *testing.M) { testcluster.Main(m) }

// TestTenants attacks as users with the cluster's roles view, edit and admin in one
// namespace, and as one without any.
func TestTenants(t *testing.T) {
	if harness.RaceEnabled {
		t.Skip("it bounds the memory that requests allocate, and the race detector empties pools at random")
	}
	const namespace = "attacked"
	cluster := testcluster.New(t, testcluster.Options{Etcd: testcluster.EtcdOptions{Unsafe: true}})
	borough := cluster.NewBorough(t, testcluster.BoroughOptions{})
	kubectl := cluster.Kubectl(t)
	kubectl.Run(t, "create", "namespace", namespace)
	kubectl.Run(t, "apply", "--filename", filepath.Join(harness.Root, "artifacts", "deploy", "components", "tenant-roles", "roles.yaml"))
	roles := []attack.Role{role(t, "cluster-admin", cluster.AdminConfig())}
	for _, name := range []string{"admin", "edit", "view"} {
		kubectl.Run(t, "create", "rolebinding", name, "--clusterrole="+name, "--user="+name, "--namespace="+namespace)
		tenant := role(t, name, user(t, cluster, name))
		tenant.ReadOnly = name == "view"
		tenant.Every = 3
		roles = append(roles, tenant)
	}
	stranger := role(t, "stranger", user(t, cluster, "stranger"))
	stranger.ReadOnly, stranger.Every = true, 20
	roles = append(roles, stranger)
	// The cluster's controller aggregates Borough's rights into its roles.
	for _, name := range []string{"admin", "edit"} {
		poll.Eventually(t, func() string {
			if _, stderr, err := kubectl.Try(t.Context(), "", "auth", "can-i", "create", "pods.tenancy.borough.io", "--as="+name, "--namespace="+namespace); err != nil {
				return name + " may not create Pods: " + stderr
			}
			return ""
		})
	}

	// The counters are the server's own, which are read past kube-apiserver.
	server := borough.Servers[0].Direct(cluster.AdminConfig())
	client, err := attack.NewClient(server)
	if err != nil {
		t.Fatal(err)
	}
	attack.Test(t, borough.Servers[0].Process, attack.Options{
		Server:    attack.Server{URL: server.Host, Client: client},
		Roles:     roles,
		Namespace: namespace,
		Seed:      *seed,
		Only:      *only,
		Every:     *every,
		Random:    *random,
		CPU:       *cpu,
	})
}

func user(t *testing.T, cluster *testcluster.Cluster, name string) *rest.Config {
	t.Helper()
	config, err := cluster.UserConfig(name)
	if err != nil {
		t.Fatal(err)
	}
	return config
}

func role(t *testing.T, name string, config *rest.Config) attack.Role {
	t.Helper()
	client, err := attack.NewClient(config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.CloseIdleConnections)
	return attack.Role{Name: name, Host: config.Host, Client: client}
}
