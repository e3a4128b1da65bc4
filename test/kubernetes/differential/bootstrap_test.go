// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package differential

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	rbacclient "k8s.io/client-go/kubernetes/typed/rbac/v1"
	"k8s.io/client-go/rest"

	"github.com/borough-io/borough/pkg/apis/coregroup"
)

// roleDifferences are the rights that only one side gives in a ClusterRole.
var roleDifferences = map[string][]string{
	"system:aggregate-to-edit": {"only Kubernetes: impersonate serviceaccounts"},
	// kubectl lists them before it creates objects of some kinds.
	"system:discovery": {"only Borough: list customresourcedefinitions.apiextensions.k8s.io"},
}

// componentRoles are the ClusterRoles for components of Kubernetes, which do not run with
// a standalone server. Those for its controllers, system:controller:*, are others.
var componentRoles = []string{
	"system:certificates.k8s.io:certificatesigningrequests:nodeclient",
	"system:certificates.k8s.io:certificatesigningrequests:selfnodeclient",
	"system:certificates.k8s.io:kube-apiserver-client-approver",
	"system:certificates.k8s.io:kube-apiserver-client-kubelet-approver",
	"system:certificates.k8s.io:kubelet-serving-approver",
	"system:certificates.k8s.io:legacy-unknown-approver",
	"system:cluster-trust-bundle-discovery",
	"system:heapster",
	"system:kube-aggregator",
	"system:kube-controller-manager",
	"system:kube-dns",
	"system:kube-scheduler",
	"system:kubelet-api-admin",
	"system:node",
	"system:node-bootstrapper",
	"system:node-problem-detector",
	"system:node-proxier",
	"system:persistent-volume-provisioner",
	"system:service-account-issuer-discovery",
	"system:volume-scheduler",
}

// TestBootstrapPolicy compares the ClusterRoles that both sides have from the start, and
// their bindings. Of those of Kubernetes, only what Borough serves is compared.
func TestBootstrapPolicy(t *testing.T) {
	kube, borough := bootstrapPolicy(t, pair.Kubernetes.Config), bootstrapPolicy(t, pair.Borough.Config)
	served := servedRights(t, pair.Borough.Config)
	isComponent := func(name string) bool {
		return slices.Contains(componentRoles, name) || strings.HasPrefix(name, "system:controller:")
	}
	for name, want := range kube {
		got, found := borough[name]
		if found == isComponent(name) {
			t.Errorf("Borough has %s: %t", name, found)
		}
		if !found {
			continue
		}
		if diff := cmp.Diff(want.role.Labels, got.role.Labels); diff != "" {
			t.Errorf("labels of %s (-Kubernetes +Borough):\n%s", name, diff)
		}
		if diff := cmp.Diff(want.role.AggregationRule, got.role.AggregationRule); diff != "" {
			t.Errorf("aggregation rule of %s (-Kubernetes +Borough):\n%s", name, diff)
		}
		if diff := cmp.Diff(want.subjects, got.subjects); diff != "" {
			t.Errorf("subjects of %s (-Kubernetes +Borough):\n%s", name, diff)
		}
		if got.role.AggregationRule != nil {
			continue // the controllers write its rules
		}
		rights := rightsIn(want.role.Rules)
		maps.DeleteFunc(rights, func(right string, _ bool) bool {
			verb, resource, _ := strings.Cut(right, " ")
			return slices.Contains(resourceVerbs, verb) && !strings.HasPrefix(resource, "/") && !served[right]
		})
		if diff := cmp.Diff(roleDifferences[name], differingRights(rights, rightsIn(got.role.Rules))); diff != "" {
			t.Errorf("differences of %s (-known +found):\n%s", name, diff)
		}
	}
}

// bootstrapRole is a ClusterRole and the subjects of the ClusterRoleBinding of its name.
type bootstrapRole struct {
	role     rbacv1.ClusterRole
	subjects []rbacv1.Subject
}

// bootstrapPolicy reads what a server has created, by name.
func bootstrapPolicy(t *testing.T, config *rest.Config) map[string]bootstrapRole {
	t.Helper()
	client, err := rbacclient.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	created := metav1.ListOptions{LabelSelector: "kubernetes.io/bootstrapping=rbac-defaults"}
	roles, err := client.ClusterRoles().List(t.Context(), created)
	if err != nil {
		t.Fatal(err)
	}
	bindings, err := client.ClusterRoleBindings().List(t.Context(), created)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]bootstrapRole{}
	for _, role := range roles.Items {
		all[role.Name] = bootstrapRole{role: role}
	}
	for _, binding := range bindings.Items {
		bound := all[binding.RoleRef.Name]
		bound.subjects = append(bound.subjects, binding.Subjects...)
		all[binding.RoleRef.Name] = bound
	}
	return all
}

// servedRights returns the rights that requests for the resources of a server need.
func servedRights(t *testing.T, config *rest.Config) map[string]bool {
	t.Helper()
	client, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	_, lists, err := client.ServerGroupsAndResourcesWithContext(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	rights := map[string]bool{}
	for _, list := range lists {
		gv, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			t.Fatal(err)
		}
		for _, resource := range list.APIResources {
			for _, verb := range resource.Verbs {
				rights[verb+" "+schema.GroupResource{Group: gv.Group, Resource: resource.Name}.String()] = true
			}
		}
	}
	return rights
}

// resourceVerbs are the verbs that discovery shows. A right with another verb is not
// one to a resource that is served.
var resourceVerbs = []string{"get", "list", "watch", "create", "update", "patch", "delete", "deletecollection"}

// rightsIn returns what rules allow. The kinds of Borough's own group are those of core.
func rightsIn(rules []rbacv1.PolicyRule) map[string]bool {
	rights := map[string]bool{}
	for _, rule := range rules {
		for _, verb := range rule.Verbs {
			for _, url := range rule.NonResourceURLs {
				rights[verb+" "+url] = true
			}
			for _, group := range rule.APIGroups {
				for _, resource := range rule.Resources {
					target := schema.GroupResource{Group: group, Resource: resource}
					if coregroup.Shared(resource) {
						target.Group = coregroup.GroupName
					}
					right := verb + " " + target.String()
					for _, name := range rule.ResourceNames {
						rights[right+" "+name] = true
					}
					if len(rule.ResourceNames) == 0 {
						rights[right] = true
					}
				}
			}
		}
	}
	return rights
}

// differingRights returns the rights that only one side gives, sorted.
func differingRights(kube, borough map[string]bool) (differing []string) {
	for right := range kube {
		if !borough[right] {
			differing = append(differing, fmt.Sprint("only Kubernetes: ", right))
		}
	}
	for right := range borough {
		if !kube[right] {
			differing = append(differing, fmt.Sprint("only Borough: ", right))
		}
	}
	slices.Sort(differing)
	return differing
}
