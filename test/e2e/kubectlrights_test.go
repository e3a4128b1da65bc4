// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"regexp"
	"testing"
)

// TestKubectlRights manages rights with the commands of kubectl.
func TestKubectlRights(t *testing.T) {
	t.Parallel()
	ns := newNamespace(t, borough)
	alice := ns + "-alice"
	kubectl := func(args ...string) string { return borough.Kubectl(t, append([]string{"-n", ns}, args...)...) }
	kubectl("create", "role", "reader", "--verb=get,list", "--resource=pods", "--resource=pods/status")
	kubectl("create", "rolebinding", "readers", "--role=reader", "--user="+alice, "--group="+ns+"-team", "--serviceaccount=other:robot")
	kubectl("create", "clusterrole", alice, "--verb=get", "--non-resource-url=/metrics")
	kubectl("create", "clusterrolebinding", alice, "--clusterrole="+alice, "--user="+alice)
	defer kubectl("delete", "clusterrolebinding,clusterrole", alice)

	for output, want := range map[string]string{
		kubectl("get", "rolebindings", "-o", "wide"):                                                              `(?m)^NAME +ROLE +AGE +USERS +GROUPS +SERVICEACCOUNTS\nreaders +Role/reader +\S+ +` + alice + ` +` + ns + `-team +other/robot$`,
		kubectl("get", "roles"):                                                                                   `(?m)^NAME +CREATED AT\nreader +20\S+Z$`,
		kubectl("describe", "role", "reader"):                                                                     `pods/status +\[\] +\[\] +\[get list\]`,
		kubectl("describe", "rolebinding", "readers"):                                                             `(?s)Kind: +Role\s+Name: +reader.*ServiceAccount +robot +other`,
		kubectl("auth", "can-i", "list", "pods", "--as="+alice):                                                   `^yes\s*$`,
		kubectl("auth", "can-i", "get", "/metrics", "--as="+alice):                                                `^yes\s*$`,
		kubectl("auth", "can-i", "get", "pods", "--as=x", "--as-group="+ns+"-team"):                               `^yes\s*$`,
		kubectl("auth", "can-i", "get", "pods", "--subresource=status", "--as=system:serviceaccount:other:robot"): `^yes\s*$`,
		kubectl("auth", "can-i", "--list", "--as="+alice):                                                         `(?s)pods\.tenancy\.borough\.io +\[\] +\[\] +\[get list\].*\[/metrics\] +\[\] +\[get\]`,
		kubectl("auth", "whoami", "--as="+alice, "--as-group=staff"):                                              `(?s)Username +` + alice + `\s+Groups +\[staff system:authenticated\]`,
	} {
		if !regexp.MustCompile(want).MatchString(output) {
			t.Errorf("got\n%s\nwant %s", output, want)
		}
	}
	for _, denied := range [][]string{{"delete", "pods"}, {"get", "/debug/pprof/"}, {"list", "pods", "-A"}} {
		stdout, _, err := borough.TryKubectl(t, "", append([]string{"-n", ns, "auth", "can-i", "--as=" + alice}, denied...)...)
		if err == nil || stdout != "no\n" {
			t.Errorf("can-i %v: got %q, %v", denied, stdout, err)
		}
	}

	manifest := fmt.Sprintf(`
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: reader, namespace: %[1]s}
rules: [{apiGroups: [tenancy.borough.io], resources: [limitranges], verbs: [get]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: readers, namespace: %[1]s}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: view}
subjects: [{kind: User, name: %[1]s-bob}]
`, ns)
	stdout, stderr, err := borough.TryKubectl(t, manifest, "auth", "reconcile", "-f", "-")
	if err != nil {
		t.Fatalf("kubectl auth reconcile: %v\n%s", err, stderr)
	}
	wantContains(t, stdout, "role.rbac.authorization.k8s.io/reader reconciled", "rolebinding.rbac.authorization.k8s.io/readers reconciled")
	wantContains(t, kubectl("get", "role", "reader", "-o", "jsonpath={.rules[*].resources}"), "pods", "limitranges") // adds rules
	wantContains(t, kubectl("get", "rolebindings"), "ClusterRole/view")                                              // replaces the binding
	wantContains(t, borough.KubectlFails(t, "-n", ns, "patch", "rolebinding", "readers", "--type=merge", "-p", `{"roleRef":{"name":"edit"}}`), "field is immutable")
}
