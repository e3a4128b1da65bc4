// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/discovery"

	v1 "github.com/borough-io/borough/pkg/apis/tenancy/v1"
	"github.com/borough-io/borough/pkg/generated/clientset/versioned"
	"github.com/borough-io/borough/test/e2e/harness"
	"github.com/borough-io/borough/test/hostcluster"
)

// etcdHangs looks at what works while the etcd of a deployment hangs, as
// docs/operations.md says it.
func etcdHangs(t *testing.T, cluster *hostcluster.Cluster, borough *hostcluster.Borough) {
	t.Helper()
	ctx := t.Context()
	discoverer, err := discovery.NewDiscoveryClientForConfig(cluster.AdminConfig())
	if err != nil {
		t.Fatal(err)
	}
	for _, legacy := range []bool{false, true} {
		discoverer.UseLegacyDiscovery = legacy
		quick, cancel := context.WithTimeout(ctx, 20*time.Second)
		_, lists, err := discoverer.ServerGroupsAndResourcesWithContext(quick)
		cancel()
		if err != nil || !serves(lists) {
			t.Errorf("with our etcd hanging, discovery (legacy %v) has us: %v, error %v", legacy, serves(lists), err)
		}
	}
	if err := borough.AwaitAPI(ctx); err != nil { // OpenAPI too
		t.Errorf("with our etcd hanging: %v", err)
	}
	config := cluster.AdminConfig()
	config.Host, config.CAData = "https://127.0.0.1:"+strconv.Itoa(borough.Servers[0].Port), borough.CA()
	server := harness.NewHTTP(t, config)
	for _, path := range []string{"/apis", "/apis/tenancy.borough.io/v1", "/openapi/v2", "/openapi/v3/apis/tenancy.borough.io/v1"} {
		if answer := server.Do(t, http.MethodGet, path, nil); answer.Code != http.StatusOK {
			t.Errorf("with our etcd hanging, %s: got %v", path, answer)
		}
	}
	harness.Eventually(t, func() string { // it asks etcd only so often
		answer := server.Do(t, http.MethodGet, "/readyz?verbose", nil)
		if answer.Code != http.StatusInternalServerError || !strings.Contains(string(answer.Body), "[-]etcd") {
			return "with our etcd hanging, /readyz: got " + answer.String()
		}
		return ""
	})
	// Whether the host or the server is the first to give up, and how, is open.
	brief := cluster.AdminConfig()
	brief.Timeout = 2 * time.Second
	client, err := versioned.NewForConfig(brief)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client.TenancyV1().Namespaces().Create(ctx, &v1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "too-late"}}, metav1.CreateOptions{}); err == nil {
		t.Error("with our etcd hanging, a Namespace was created")
	}
	kubectl := cluster.Kubectl(t)
	kubectl.Run(t, "create", "namespace", "etcd-hangs")
	kubectl.Run(t, "delete", "namespace", "etcd-hangs", "--timeout=60s")
}

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

func serves(lists []*metav1.APIResourceList) bool {
	for _, list := range lists {
		if list.GroupVersion == v1.SchemeGroupVersion.String() {
			return len(list.APIResources) > 0
		}
	}
	return false
}
