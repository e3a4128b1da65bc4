// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/discovery"

	v1 "github.com/borough-io/borough/pkg/apis/tenancy/v1"
	"github.com/borough-io/borough/pkg/generated/clientset/versioned"
	"github.com/borough-io/borough/test/harness"
	"github.com/borough-io/borough/test/kubernetes/testcluster"
	"github.com/borough-io/borough/test/poll"
)

// etcdHangs checks what works while the etcd of a deployment hangs, as
// docs/operations.md describes.
func etcdHangs(t *testing.T, cluster *testcluster.Cluster, borough *testcluster.Borough) {
	t.Helper()
	ctx := t.Context()
	// A server gives up after 60 seconds what etcd does not answer.
	const quickly = 50 * time.Second
	config := cluster.AdminConfig()
	config.Timeout = quickly // by default, discovery has a shorter one
	discoverer, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	for _, legacy := range []bool{false, true} {
		discoverer.UseLegacyDiscovery = legacy
		quick, cancel := context.WithTimeout(ctx, quickly)
		_, lists, err := discoverer.ServerGroupsAndResourcesWithContext(quick)
		cancel()
		if err != nil || !serves(lists) {
			t.Errorf("while our etcd hangs, discovery (legacy %v) has us: %v, error %v", legacy, serves(lists), err)
		}
	}
	if err := borough.AwaitAPI(ctx); err != nil { // OpenAPI too
		t.Errorf("while our etcd hangs: %v", err)
	}
	server := harness.NewHTTP(t, borough.Servers[0].Direct(cluster.AdminConfig()))
	for _, path := range []string{"/apis", "/apis/tenancy.borough.io/v1", "/openapi/v2", "/openapi/v3/apis/tenancy.borough.io/v1"} {
		if answer := server.Do(t, http.MethodGet, path, nil); answer.Code != http.StatusOK {
			t.Errorf("while our etcd hangs, %s: got %v", path, answer)
		}
	}
	poll.Eventually(t, func() string { // the server checks etcd periodically
		answer := server.Do(t, http.MethodGet, "/readyz?verbose", nil)
		if answer.Code != http.StatusInternalServerError || !strings.Contains(string(answer.Body), "[-]etcd") {
			return "while our etcd hangs, /readyz: got " + answer.String()
		}
		return ""
	})
	// Either kube-apiserver or our server may time out first, in any way.
	brief := cluster.AdminConfig()
	brief.Timeout = 2 * time.Second
	client, err := versioned.NewForConfig(brief)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client.TenancyV1().Namespaces().Create(ctx, &v1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "too-late"}}, metav1.CreateOptions{}); err == nil {
		t.Error("while our etcd hangs, a Namespace was created")
	}
	kubectl := cluster.Kubectl(t)
	kubectl.Run(t, "create", "namespace", "etcd-hangs")
	kubectl.Run(t, "delete", "namespace", "etcd-hangs", waitTimeout)
}

// serversDown kills all servers and checks what still works in the cluster, as
// docs/operations.md describes. The servers stay down.
func serversDown(t *testing.T, cluster *testcluster.Cluster, borough *testcluster.Borough) {
	t.Helper()
	ctx := t.Context()
	core := cluster.Client(t).CoreV1()
	kubectl := cluster.Kubectl(t)
	kill := func() {
		t.Helper()
		for _, server := range borough.Servers {
			server.Process.Kill()
			if err := server.SetReady(ctx, false); err != nil {
				t.Fatal(err)
			}
		}
		kubectl.Run(t, "wait", "apiservice/v1.tenancy.borough.io", "--for=condition=Available=false", waitTimeout)
	}
	// held creates a namespace of the cluster, deletes it, and waits until its
	// conditions name our API as the reason that it remains.
	held := func(name string) {
		t.Helper()
		kubectl.Run(t, "create", "namespace", name)
		kubectl.Run(t, "create", "configmap", "content", "-n", name)
		kubectl.Run(t, "delete", "namespace", name, "--wait=false")
		kubectl.Run(t, "wait", "namespace/"+name, "--for=condition=NamespaceDeletionDiscoveryFailure", waitTimeout)
		wantContains(t, kubectl.Run(t, "get", "namespace", name, "-o", `jsonpath={.status.conditions[?(@.type=="NamespaceDeletionDiscoveryFailure")].message}`),
			"tenancy.borough.io/v1: stale GroupVersion discovery")
		// Its content is still deleted.
		if _, err := core.ConfigMaps(name).Get(ctx, "content", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
			t.Errorf("the content of a namespace that remains: got error %v", err)
		}
	}

	kill()
	held("down-1")
	// The garbage collector still collects the cluster's objects.
	owner, err := core.ConfigMaps("default").Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "owner"}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	owned := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "owned", OwnerReferences: []metav1.OwnerReference{{
		APIVersion: "v1", Kind: "ConfigMap", Name: owner.Name, UID: owner.UID,
	}}}}
	if _, err := core.ConfigMaps("default").Create(ctx, owned, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	kubectl.Run(t, "delete", "configmap", "owner", "-n", "default")
	kubectl.Run(t, "wait", "configmap/owned", "-n", "default", "--for=delete", waitTimeout)
	// Discovery returns all other groups, and an error that names ours.
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

	// Restart one server.
	if err := borough.Servers[0].Start(ctx); err != nil {
		t.Fatal(err)
	}
	if err := borough.Servers[0].SetReady(ctx, true); err != nil {
		t.Fatal(err)
	}
	kubectl.Run(t, "wait", "namespace/down-1", "--for=delete", waitTimeout)

	// Kill it again.
	kill()
	held("down-2")
	kubectl.Run(t, "delete", "apiservice", "v1.tenancy.borough.io")
	kubectl.Run(t, "wait", "namespace/down-2", "--for=delete", waitTimeout)
}

func serves(lists []*metav1.APIResourceList) bool {
	for _, list := range lists {
		if list.GroupVersion == v1.SchemeGroupVersion.String() {
			return len(list.APIResources) > 0
		}
	}
	return false
}
