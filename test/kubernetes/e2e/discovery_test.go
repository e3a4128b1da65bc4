// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"

	"github.com/borough-io/borough/test/poll"
)

// TestDiscovery finds our kinds in both forms of the cluster's discovery.
func TestDiscovery(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		form   string
		legacy bool
	}{{"aggregated", false}, {"unaggregated", true}} {
		client, err := discovery.NewDiscoveryClientForConfig(cluster.AdminConfig())
		if err != nil {
			t.Fatal(err)
		}
		client.UseLegacyDiscovery = tc.legacy
		_, lists, err := client.ServerGroupsAndResourcesWithContext(t.Context())
		if err != nil {
			t.Fatalf("%s: %v", tc.form, err)
		}
		got := map[string]string{}
		for _, list := range lists {
			if list.GroupVersion != "tenancy.borough.io/v1" {
				continue
			}
			for _, resource := range list.APIResources {
				got[resource.Name] = describe(resource)
			}
		}
		want := map[string]string{
			"limitranges":              "LimitRange, namespaced: create delete deletecollection get list patch update watch",
			"resourcequotas":           "ResourceQuota, namespaced: create delete deletecollection get list patch update watch",
			"namespacepurges":          "NamespacePurge, namespaced: create",
			"namespaces":               "Namespace: create delete get list patch update watch",
			"namespaces/finalize":      "Namespace: create update",
			"namespaces/status":        "Namespace: get patch update",
			"namespacetemplates":       "NamespaceTemplate: create delete deletecollection get list patch update watch (nst)",
			"pods":                     "Pod, namespaced: create delete deletecollection get list patch update watch",
			"pods/binding":             "Binding, namespaced: create",
			"pods/ephemeralcontainers": "Pod, namespaced: get patch update",
			"pods/resize":              "Pod, namespaced: get patch update",
			"pods/status":              "Pod, namespaced: get patch update",
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s discovery differs (-want +got):\n%s", tc.form, diff)
		}
	}
}

// TestServedGroups checks that in a cluster our server serves its own group only: the core
// group, Events, Leases, RBAC and the reviews are the cluster's. Nor does it serve
// namespacerequests and projects.
func TestServedGroups(t *testing.T) {
	t.Parallel()
	admin := newDirect(t, cluster.AdminConfig())
	var groups metav1.APIGroupList
	admin.Do(t, http.MethodGet, "/apis", nil).JSON(t, &groups)
	if len(groups.Groups) != 1 || groups.Groups[0].Name != "tenancy.borough.io" {
		t.Errorf("got %+v", groups.Groups)
	}
	for _, path := range []string{"rbac.authorization.k8s.io/v1/clusterroles", "authorization.k8s.io/v1/selfsubjectaccessreviews", "authentication.k8s.io/v1/selfsubjectreviews", "events.k8s.io/v1/events", "coordination.k8s.io/v1/leases", "apiextensions.k8s.io/v1/customresourcedefinitions", "tenancy.borough.io/v1/namespacerequests", "tenancy.borough.io/v1/projects"} {
		if answer := admin.Do(t, http.MethodGet, "/apis/"+path, nil); answer.Code != http.StatusNotFound {
			t.Errorf("%s: got %v", path, answer)
		}
	}
	for _, path := range []string{"/api", "/api/v1", "/api/v1/namespaces", "/api/v1/namespaces/default/pods"} {
		if answer := admin.Do(t, http.MethodGet, path, nil); answer.Code != http.StatusNotFound {
			t.Errorf("%s: got %v", path, answer)
		}
	}
}

// TestFlags checks that a server shows its flags to those who may get them.
func TestFlags(t *testing.T) {
	t.Parallel()
	answer := newDirect(t, cluster.AdminConfig()).Do(t, http.MethodGet, "/flagz", nil)
	if answer.Code != http.StatusOK || !strings.Contains(string(answer.Body), "etcd-servers") {
		t.Errorf("got %v", answer)
	}
	if answer := newDirect(t, &rest.Config{}).Do(t, http.MethodGet, "/flagz", nil); answer.Code != http.StatusForbidden && answer.Code != http.StatusUnauthorized {
		t.Errorf("without credentials: got %v", answer)
	}
}

// TestDiscoveryCost counts the requests to our server when a client discovers
// the cluster: none for aggregated discovery, which the aggregator serves
// itself, and one for the unaggregated form.
func TestDiscoveryCost(t *testing.T) {
	t.Parallel()
	agents := map[bool]string{}
	for _, legacy := range []bool{false, true} {
		config := cluster.AdminConfig()
		agents[legacy] = newName("discoverer")
		config.UserAgent = agents[legacy]
		client, err := discovery.NewDiscoveryClientForConfig(config)
		if err != nil {
			t.Fatal(err)
		}
		client.UseLegacyDiscovery = legacy
		if _, _, err := client.ServerGroupsAndResourcesWithContext(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	var requests map[string]int
	poll.Eventually(t, func() string {
		requests = map[string]int{}
		_ = findAudit(t, func(event auditEvent) bool {
			requests[event.UserAgent]++
			return false
		})
		if requests[agents[true]] == 0 {
			return "no request to our server"
		}
		return ""
	})
	if aggregated, legacy := requests[agents[false]], requests[agents[true]]; aggregated != 0 || legacy != 1 {
		t.Errorf("one discovery of the cluster: our server got %d requests, and %d for the unaggregated form; want 0 and 1", aggregated, legacy)
	}
}

// describe formats what discovery has of a resource. Short names and categories
// would conflict with core's.
func describe(r metav1.APIResource) string {
	text := r.Kind
	if r.Namespaced {
		text += ", namespaced"
	}
	text += ": " + strings.Join(r.Verbs, " ")
	if names := append(r.ShortNames, r.Categories...); len(names) > 0 {
		text += " (" + strings.Join(names, " ") + ")"
	}
	return text
}

// TestNamesOfCore shows that the names of core's kinds still refer to core.
func TestNamesOfCore(t *testing.T) {
	t.Parallel()
	kubectl := cluster.Kubectl(t)
	for name, want := range map[string]string{
		"namespaces": "namespace/", "namespace": "namespace/", "ns": "namespace/",
	} {
		if out := kubectl.Run(t, "get", name, "default", "-o", "name"); out != want+"default\n" {
			t.Errorf("kubectl get %s: got %q, want core's", name, out)
		}
	}
	// Categories do not include our kinds either.
	namespace := newNamespace(t)
	newPod(t, namespace, "mine")
	for _, name := range []string{"pods", "po", "limitranges", "limits", "all"} {
		if out := kubectl.Run(t, "get", name, "-n", namespace, "-o", "name"); out != "" {
			t.Errorf("kubectl get %s: got %q, want none of ours", name, out)
		}
	}
}

func TestAPIResources(t *testing.T) {
	t.Parallel()
	out := cluster.Kubectl(t).Run(t, "api-resources", "--api-group=tenancy.borough.io", "--no-headers", "--sort-by=name")
	var got [][]string
	for line := range strings.Lines(out) {
		got = append(got, strings.Fields(line))
	}
	want := [][]string{
		{"limitranges", "tenancy.borough.io/v1", "true", "LimitRange"},
		{"namespacepurges", "tenancy.borough.io/v1", "true", "NamespacePurge"},
		{"namespaces", "tenancy.borough.io/v1", "false", "Namespace"},
		{"namespacetemplates", "nst", "tenancy.borough.io/v1", "false", "NamespaceTemplate"},
		{"pods", "tenancy.borough.io/v1", "true", "Pod"},
		{"resourcequotas", "tenancy.borough.io/v1", "true", "ResourceQuota"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("kubectl api-resources differs (-want +got):\n%s", diff)
	}
}

// TestExplain makes kubectl read our OpenAPI through the cluster.
func TestExplain(t *testing.T) {
	t.Parallel()
	kubectl := cluster.Kubectl(t)
	for _, tc := range []struct{ field, want string }{
		{"namespaces", "status\t<NamespaceStatus>"},
		{"namespaces.spec.finalizers", "FIELD: finalizers <[]string>"},
		{"namespacetemplates.spec.roleBinding", "roleRef\t<RoleRef> -required-"},
		{"namespacepurges.spec", "force\t<boolean>"},
		{"namespacepurges.spec", "namespaceUID\t<string> -required-"},
		{"limitranges.spec.limits.maxLimitRequestRatio", "FIELD: maxLimitRequestRatio <map[string]Quantity>"},
		{"pods.spec.containers.resources.limits", "FIELD: limits <map[string]Quantity>"},
	} {
		out := kubectl.Run(t, "explain", tc.field, "--api-version=tenancy.borough.io/v1")
		wantContains(t, out, "GROUP:      tenancy.borough.io", "VERSION:    v1", tc.want)
	}
}
