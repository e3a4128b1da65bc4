// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/discovery"

	v1 "github.com/borough-io/borough/pkg/apis/tenancy/v1"
	"github.com/borough-io/borough/test/hostcluster"
)

// serversDown takes all servers away and looks at what the host still does, as
// docs/operations.md says it. They stay away.
func serversDown(t *testing.T, cluster *hostcluster.Cluster, borough *hostcluster.Borough) {
	t.Helper()
	ctx := t.Context()
	host := cluster.Client(t).CoreV1()
	kubectl := cluster.Kubectl(t)
	kill := func() {
		t.Helper()
		for _, server := range borough.Servers {
			server.Process.Kill()
			if err := server.SetReady(ctx, false); err != nil {
				t.Fatal(err)
			}
		}
		kubectl.Run(t, "wait", "apiservice/v1.tenancy.borough.io", "--for=condition=Available=false", "--timeout=60s")
	}
	// held creates a namespace of the host, deletes it, and waits until it says
	// that we hold it up.
	held := func(name string) {
		t.Helper()
		kubectl.Run(t, "create", "namespace", name)
		kubectl.Run(t, "create", "configmap", "content", "-n", name)
		kubectl.Run(t, "delete", "namespace", name, "--wait=false")
		kubectl.Run(t, "wait", "namespace/"+name, "--for=condition=NamespaceDeletionDiscoveryFailure", "--timeout=60s")
		wantContains(t, kubectl.Run(t, "get", "namespace", name, "-o", `jsonpath={.status.conditions[?(@.type=="NamespaceDeletionDiscoveryFailure")].message}`),
			"tenancy.borough.io/v1: stale GroupVersion discovery")
		// What is in it goes nonetheless.
		if _, err := host.ConfigMaps(name).Get(ctx, "content", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
			t.Errorf("content of a namespace that is held up: got error %v", err)
		}
	}

	kill()
	held("down-1")
	// The garbage collector collects what is the host's.
	owner, err := host.ConfigMaps("default").Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "owner"}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	owned := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "owned", OwnerReferences: []metav1.OwnerReference{{
		APIVersion: "v1", Kind: "ConfigMap", Name: owner.Name, UID: owner.UID,
	}}}}
	if _, err := host.ConfigMaps("default").Create(ctx, owned, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	kubectl.Run(t, "delete", "configmap", "owner", "-n", "default")
	kubectl.Run(t, "wait", "configmap/owned", "-n", "default", "--for=delete", "--timeout=60s")
	// Discovery has everything else, and names what it lacks.
	discoverer, err := discovery.NewDiscoveryClientForConfig(cluster.AdminConfig())
	if err != nil {
		t.Fatal(err)
	}
	for _, legacy := range []bool{false, true} {
		discoverer.UseLegacyDiscovery = legacy
		_, lists, err := discoverer.ServerGroupsAndResourcesWithContext(ctx)
		failed, ok := discovery.GroupDiscoveryFailedErrorGroups(err)
		if !ok || len(failed) != 1 || failed[v1.SchemeGroupVersion] == nil || len(lists) < 10 {
			t.Errorf("discovery (legacy %v): %d lists, error %v; want all but ours", legacy, len(lists), err)
		}
	}
	if out := kubectl.Run(t, "api-resources", "-o", "name"); !strings.Contains(out, "configmaps\n") || strings.Contains(out, v1.GroupName) {
		t.Errorf("api-resources: got\n%s", out)
	}

	// A server is back.
	if err := borough.Servers[0].Start(ctx); err != nil {
		t.Fatal(err)
	}
	if err := borough.Servers[0].SetReady(ctx, true); err != nil {
		t.Fatal(err)
	}
	kubectl.Run(t, "wait", "namespace/down-1", "--for=delete", "--timeout=90s")

	// None comes back.
	kill()
	held("down-2")
	kubectl.Run(t, "delete", "apiservice", "v1.tenancy.borough.io")
	kubectl.Run(t, "wait", "namespace/down-2", "--for=delete", "--timeout=90s")
}
