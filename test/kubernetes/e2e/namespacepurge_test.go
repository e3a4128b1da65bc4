// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/borough-io/borough/pkg/apis/tenancy/v1"
	"github.com/borough-io/borough/test/kubernetes/testcluster"
	"github.com/borough-io/borough/test/poll"
)

// keep is a policy of the cluster: it denies deleting Pods with the label
// keep=TEAM.
const keep = `apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata:
  name: TEAM-keep
spec:
  matchConstraints:
    resourceRules:
    - {apiGroups: [tenancy.borough.io], apiVersions: [v1], operations: [DELETE], resources: [pods]}
  validations:
  - expression: '!("keep" in oldObject.metadata.?labels.orValue({})) || oldObject.metadata.labels["keep"] != "TEAM"'
    messageExpression: oldObject.metadata.name + " is kept"
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata:
  name: TEAM-keep
spec:
  policyName: TEAM-keep
  validationActions: [Deny]
`

// TestForcedPurge forces the purge of a Namespace with rights from the cluster,
// and under its policies.
func TestForcedPurge(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	client := cluster.BoroughClient(t).TenancyV1()
	admin := cluster.Kubectl(t)
	team := newName("team")
	admin.RunWith(t, strings.ReplaceAll(keep, "TEAM", team), "apply", "-f", "-")

	mine, other := newNamespace(t), newNamespace(t)
	newClusterNamespace(t, mine) // for the grants in our Namespace
	hold := func(pod *v1.Pod) { pod.Finalizers = []string{"example.com/hold"} }
	for _, namespace := range []string{mine, other} {
		newPod(t, namespace, "held", hold)
	}
	kept := newPod(t, mine, "kept", hold, func(pod *v1.Pod) { pod.Labels = map[string]string{"keep": team} })
	poll.Eventually(t, func() string { // until the server's informers have the policy
		err := client.Pods(mine).Delete(ctx, kept.Name, metav1.DeleteOptions{DryRun: []string{metav1.DryRunAll}})
		if err == nil || !strings.Contains(err.Error(), "kept is kept") {
			return fmt.Sprintf("a delete despite the policy: %v", err)
		}
		return ""
	})
	for _, namespace := range []string{mine, other} {
		admin.Run(t, "delete", namespaces, namespace, "--wait=false")
	}
	purge := func(namespace string) string {
		ns, err := client.Namespaces().Get(ctx, namespace, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return fmt.Sprintf("{apiVersion: tenancy.borough.io/v1, kind: NamespacePurge, metadata: {namespace: %s}, spec: {namespaceUID: %s, force: true}}", namespace, ns.UID)
	}

	// Not even all rights to the content include the right to purge it.
	name := newName("grace")
	subject := rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: "User", Name: name}
	grant(t, mine, subject, rbacv1.PolicyRule{APIGroups: []string{"tenancy.borough.io"}, Resources: []string{"pods", "limitranges", "namespaces"}, Verbs: []string{"*"}})
	config, err := cluster.UserConfig(name)
	if err != nil {
		t.Fatal(err)
	}
	user := cluster.KubectlAs(t, config)
	// To validate a kind that can't be patched, kubectl needs to list
	// CustomResourceDefinitions.
	create := []string{"create", "--validate=false", "-f", "-"}
	poll.Eventually(t, func() string { // until the authorizer's cache has the grant
		if _, stderr, err := user.Try(ctx, "", "get", pods, "-n", mine); err != nil {
			return stderr
		}
		return ""
	})
	const forbidden = `cannot create resource "namespacepurges" in API group "tenancy.borough.io" in the namespace "%s"`
	for _, args := range [][]string{create, append(create, "--dry-run=server")} {
		_, stderr, err := user.Try(ctx, purge(mine), args...)
		if err == nil {
			t.Fatal("a purge without the right succeeded")
		}
		wantContains(t, stderr, "(Forbidden)", fmt.Sprintf(forbidden, mine))
	}

	// Create alone is the right to an ordinary purge.
	grant(t, mine, subject, rbacv1.PolicyRule{APIGroups: []string{"tenancy.borough.io"}, Resources: []string{"namespacepurges"}, Verbs: []string{"create"}})
	poll.Eventually(t, func() string {
		_, stderr, err := user.Try(ctx, purge(mine), create...)
		if err == nil {
			t.Fatal("a forced purge without the verb force")
		}
		if !strings.Contains(stderr, fmt.Sprintf(`cannot force resource "namespacepurges" in API group "tenancy.borough.io" in the namespace "%s"`, mine)) {
			return stderr
		}
		return ""
	})

	// With both verbs, an object whose deletion a policy rejects stays.
	grant(t, mine, subject, rbacv1.PolicyRule{APIGroups: []string{"tenancy.borough.io"}, Resources: []string{"namespacepurges"}, Verbs: []string{"force"}})
	poll.Eventually(t, func() string {
		_, stderr, err := user.Try(ctx, purge(mine), create...)
		if err == nil {
			t.Fatal("a purge in spite of the policy")
		}
		if !strings.Contains(stderr, `The pods "kept" is invalid: : ValidatingAdmissionPolicy '`+team+`-keep' with binding '`+team+`-keep' denied request: kept is kept`) {
			return stderr
		}
		return ""
	})
	left, err := client.Pods(mine).List(ctx, metav1.ListOptions{})
	if err != nil || len(left.Items) != 1 || left.Items[0].UID != kept.UID {
		t.Errorf("under the policy there is %v, error %v", left, err)
	}
	manifest := purge(mine)
	if _, stderr, err := user.Try(ctx, manifest, append(create, "--dry-run=server")...); err == nil {
		t.Error("the policy does not apply to a dry run")
	} else {
		wantContains(t, stderr, "kept is kept")
	}
	admin.RunWith(t, strings.ReplaceAll(keep, "TEAM", team), "delete", "-f", "-")
	poll.Eventually(t, func() string { // until the server's informers have the change
		_, stderr, err := user.Try(ctx, manifest, create...)
		if err != nil {
			return stderr
		}
		wantContains(t, stderr, "Warning: removed 1 objects, 1 of them held")
		return ""
	})
	poll.Eventually(t, gone(t, mine))

	_, stderr, err := user.Try(ctx, purge(other), create...)
	if err == nil {
		t.Fatal("a purge in another Namespace succeeded")
	}
	wantContains(t, stderr, fmt.Sprintf(forbidden, other))
	admin.RunWith(t, purge(other), "create", "-f", "-")
	poll.Eventually(t, gone(t, other))

	poll.Eventually(t, func() string {
		return findAudit(t, func(event auditEvent) bool {
			return event.Verb == "create" && event.User.Username == name &&
				event.ObjectRef.Resource == "namespacepurges" && event.ObjectRef.Namespace == mine
		})
	})
}

// TestControllerMayNotForce asks the cluster about the rights of the controller.
func TestControllerMayNotForce(t *testing.T) {
	t.Parallel()
	for verb, want := range map[string]string{"create": "yes", "force": "no"} {
		stdout, stderr, err := cluster.Kubectl(t).Try(t.Context(), "", "auth", "can-i", verb, "namespacepurges.tenancy.borough.io", "-n", "default",
			"--as=system:serviceaccount:"+testcluster.SystemNamespace+":borough-controller-manager")
		if strings.TrimSpace(stdout) != want {
			t.Errorf("can the controller %s: %q, want %s (%v: %s)", verb, stdout, want, err, stderr)
		}
	}
}
