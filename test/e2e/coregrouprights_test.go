// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/borough-io/borough/pkg/apis/coregroup"
	v1 "github.com/borough-io/borough/pkg/apis/tenancy/v1"
)

// TestCoreRights grants rights on one group, which hold in both.
func TestCoreRights(t *testing.T) {
	t.Parallel()
	for _, granted := range []string{"", "tenancy.borough.io"} {
		ns := newNamespace(t, borough)
		user := ns + "-user"
		borough.Kubectl(t, "create", "role", "r", "-n", ns, "--verb=list,create", "--resource=pods."+granted)
		borough.Kubectl(t, "create", "rolebinding", "r", "-n", ns, "--role=r", "--user="+user)
		client := as(t, borough, user)
		for _, path := range []string{"/api/v1", "/apis/tenancy.borough.io/v1"} {
			path += "/namespaces/" + ns
			for resource, want := range map[string]int{"/pods": http.StatusOK, "/limitranges": http.StatusForbidden, "/pods/x": http.StatusForbidden} {
				if answer := client.Do(t, http.MethodGet, path+resource, nil); answer.Code != want {
					t.Errorf("granted in %q: GET %s: %v, want %d", granted, path+resource, answer, want)
				}
			}
			if answer := client.Do(t, http.MethodDelete, path+"/pods", nil); answer.Code != http.StatusForbidden {
				t.Errorf("granted in %q: DELETE %s: %v", granted, path, answer)
			}
		}
	}
}

// TestCoreRightsOfAllVerbs sends each verb of each resource that both groups have, as users
// with all rights of one group, or those to read Pods. Both groups allow the same.
func TestCoreRightsOfAllVerbs(t *testing.T) {
	t.Parallel()
	const own = "tenancy.borough.io"
	ns := newNamespace(t, borough)
	requests := discovered(t, borough, ns)
	for user, rule := range map[string]rbacv1.PolicyRule{
		"core":   {APIGroups: []string{""}, Resources: []string{"*"}, Verbs: []string{"*"}},
		"own":    {APIGroups: []string{own}, Resources: []string{"*"}, Verbs: []string{"*"}},
		"reader": {APIGroups: []string{""}, Resources: []string{"pods", "pods/status"}, Verbs: []string{"get", "list", "watch"}},
		"status": {APIGroups: []string{own}, Resources: []string{"*/status"}, Verbs: []string{"patch"}},
	} {
		role := &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Name: user}, Rules: []rbacv1.PolicyRule{rule}}
		if _, err := rights(t, borough).Roles(ns).Create(t.Context(), role, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		if _, err := rights(t, borough).RoleBindings(ns).Create(t.Context(), newRoleBinding(user, "Role", user, ns+"-"+user), metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		client := as(t, borough, ns+"-"+user)
		allowed := map[string]bool{}
		for right, r := range requests {
			group, resource, _ := strings.Cut(right, "/")
			name, _, _ := strings.Cut(resource, " ")
			if group != "" && group != own || !coregroup.Shared(name) {
				continue
			}
			answer := client.Open(t, r.method, r.path, []byte(r.body), "Content-Type", r.contentType)
			_ = answer.Body.Close() // a watch would not end
			allowed[right] = answer.StatusCode != http.StatusForbidden
		}
		granted := 0
		for right, ok := range allowed {
			resource, inOwn := strings.CutPrefix(right, own+"/")
			if !inOwn {
				continue
			}
			if other, served := allowed["/"+resource]; !served || other != ok {
				t.Errorf("%s: %s is allowed in our group: %t, in the core group: %t (served: %t)", user, resource, ok, other, served)
			}
			if ok {
				granted++
			}
		}
		// All users may list and watch Namespaces.
		if granted <= 2 || len(allowed) < 60 {
			t.Errorf("%s: %d of %d requests were allowed", user, granted, len(allowed))
		}
	}
}

// TestCoreAdmission creates what admission rejects through both groups.
func TestCoreAdmission(t *testing.T) {
	t.Parallel()
	ns := newNamespace(t, borough)
	createLimitRange(t, borough, ns, newLimitRange("l", item("Container", "max cpu=1", "defaultRequest cpu=100m", "default cpu=1")))
	borough.Kubectl(t, "create", "quota", "q", "-n", ns, "--hard=pods=1")
	core, own := coreClient(t, borough, "").CoreV1(), borough.Client(t).TenancyV1()
	create := func(ns string, pod *v1.Pod) (ofCore, ofOwn error) {
		_, ofCore = core.Pods(ns).Create(t.Context(), (*corev1.Pod)(pod), metav1.CreateOptions{})
		_, ofOwn = own.Pods(ns).Create(t.Context(), pod, metav1.CreateOptions{})
		return ofCore, ofOwn
	}
	for name, test := range map[string]struct {
		namespace string
		pod       *v1.Pod
		core, own string
	}{
		"too big": {
			ns, newPod("big", withResources(nil, quantities("cpu=2"))),
			`pods "big" is forbidden: maximum cpu usage per Container is 1, but limit is 2`,
			`pods.tenancy.borough.io "big" is forbidden: maximum cpu usage per Container is 1, but limit is 2`,
		},
		"no namespace": {
			"absent-" + ns, newPod("lost"),
			`namespaces "absent-` + ns + `" not found`,
			`namespaces.tenancy.borough.io "absent-` + ns + `" not found`,
		},
		"invalid": {
			ns, newPod("invalid", func(p *v1.Pod) { p.Spec.Containers[0].Image = "" }),
			`Pod "invalid" is invalid: spec.containers[0].image: Required value`,
			`Pod.tenancy.borough.io "invalid" is invalid: spec.containers[0].image: Required value`,
		},
	} {
		ofCore, ofOwn := create(test.namespace, test.pod)
		wantEqual(t, name, fmt.Sprint(ofCore), test.core)
		wantEqual(t, name, fmt.Sprint(ofOwn), test.own)
	}
	created, err := core.Pods(ns).Create(t.Context(), (*corev1.Pod)(newPod("one")), metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	wantEqual(t, "default request", created.Spec.Containers[0].Resources.Requests.Cpu().String(), "100m")
	ofCore, ofOwn := create(ns, newPod("two"))
	wantEqual(t, "second Pod", fmt.Sprint(ofCore), `pods "two" is forbidden: exceeded quota: q, requested: pods=1, used: pods=1, limited: pods=1`)
	wantContains(t, fmt.Sprint(ofOwn), `pods.tenancy.borough.io "two" is forbidden: exceeded quota: q`)
}
