// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/borough-io/borough/pkg/apis/tenancy/v1"
	"github.com/borough-io/borough/pkg/generated/clientset/versioned"
	"github.com/borough-io/borough/test/harness"
	"github.com/borough-io/borough/test/kubernetes/testcluster"
	"github.com/borough-io/borough/test/poll"
)

// frozenPolicy returns a policy that denies creates of a resource in our Namespaces with
// the label TEAM, by another label of the Namespace.
func frozenPolicy(name, resource string) string {
	return strings.NewReplacer("NAME", name, "RESOURCE", resource).Replace(`apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata:
  name: NAME
spec:
  matchConstraints:
    resourceRules:
    - {apiGroups: [tenancy.borough.io], apiVersions: [v1], operations: [CREATE], resources: [RESOURCE]}
  validations:
  - expression: namespaceObject.metadata.labels["stage"] != "frozen"
    messageExpression: namespaceObject.metadata.name + " is frozen"
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata:
  name: NAME
spec:
  policyName: NAME
  validationActions: [Deny]
  matchResources:
    namespaceSelector: {matchLabels: {team: TEAM}}
`)
}

// policies apply to Pods in our Namespaces with the label TEAM, and read another label of
// the Namespace.
var policies = frozenPolicy("TEAM-validating", "pods") + "---\n" + `apiVersion: admissionregistration.k8s.io/v1
kind: MutatingAdmissionPolicy
metadata:
  name: TEAM-mutating
spec:
  matchConstraints:
    resourceRules:
    - {apiGroups: [tenancy.borough.io], apiVersions: [v1], operations: [CREATE], resources: [pods]}
  reinvocationPolicy: Never
  mutations:
  - patchType: ApplyConfiguration
    applyConfiguration:
      expression: 'Object{metadata: Object.metadata{labels: {"stage": namespaceObject.metadata.labels["stage"]}}}'
---
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingAdmissionPolicyBinding
metadata:
  name: TEAM-mutating
spec:
  policyName: TEAM-mutating
  matchResources:
    namespaceSelector: {matchLabels: {team: TEAM}}
`

// newUnnamedPod returns a Pod that gets its name when it is created.
func newUnnamedPod() *v1.Pod {
	pod := harness.NewPod("")
	pod.GenerateName = "pod-"
	return pod
}

// awaitStage waits until the policies set the stage of a Pod that is created in a Namespace.
func awaitStage(t *testing.T, client versioned.Interface, namespace, stage string) {
	t.Helper()
	poll.Eventually(t, func() string {
		created, err := client.TenancyV1().Pods(namespace).Create(t.Context(), newUnnamedPod(), metav1.CreateOptions{})
		if err != nil {
			return err.Error()
		}
		if got := created.Labels["stage"]; got != stage {
			return fmt.Sprintf("the Pod has the stage %q, want %q", got, stage)
		}
		return ""
	})
}

// TestPolicies applies the cluster's admission policies to our Pods. Their
// namespaceObject is our Namespace, not the cluster's namespace of the same
// name.
func TestPolicies(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	team := newName("team")
	client := cluster.BoroughClient(t).TenancyV1()
	create := func(stage string) string {
		t.Helper()
		ns, err := client.Namespaces().Create(ctx, &v1.Namespace{ObjectMeta: metav1.ObjectMeta{
			Name: newName("policies"), Labels: map[string]string{"team": team, "stage": stage},
		}}, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		_, err = cluster.Client(t).CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
			Name: ns.Name, Labels: map[string]string{"stage": "host"},
		}}, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return ns.Name
	}
	open, frozen := create("open"), create("frozen")
	outside := newNamespace(t)
	cluster.Kubectl(t).RunWith(t, strings.ReplaceAll(policies, "TEAM", team), "apply", "-f", "-")

	poll.Eventually(t, func() string { // until the server's informers have the policies
		_, err := client.Pods(frozen).Create(ctx, newUnnamedPod(), metav1.CreateOptions{})
		if err == nil {
			return "a Pod was created in spite of the policy"
		}
		if want := frozen + " is frozen"; !strings.Contains(err.Error(), want) {
			return err.Error() + ", want " + want
		}
		return ""
	})
	awaitStage(t, cluster.BoroughClient(t), open, "open")
	if created := newPod(t, outside, "free"); created.Labels["stage"] != "" {
		t.Errorf("the policies apply outside the selected Namespaces: %v", created.Labels)
	}
}

const paramPolicy = `apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata:
  name: TEAM-params
spec:
  paramKind: {apiVersion: v1, kind: ConfigMap}
  matchConstraints:
    resourceRules:
    - {apiGroups: [tenancy.borough.io], apiVersions: [v1], operations: [CREATE], resources: [pods]}
  validations:
  - expression: '!has(object.metadata.labels) || !(params.data["forbidden"] in object.metadata.labels)'
    message: the label is forbidden
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata:
  name: TEAM-params
spec:
  policyName: TEAM-params
  validationActions: [Deny]
  paramRef: {name: TEAM, namespace: default, parameterNotFoundAction: Deny}
  matchResources:
    namespaceSelector: {matchLabels: {team: TEAM}}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata:
  name: TEAM-optional
spec:
  policyName: TEAM-params
  validationActions: [Deny]
  paramRef: {name: absent, namespace: default, parameterNotFoundAction: Allow}
  matchResources:
    namespaceSelector: {matchLabels: {team: TEAM}}
`

// TestPolicyParameters applies a policy whose parameters the server may not read,
// which rejects Pods but keeps the server ready, and then grants the right. The server
// keeps what it reads with the right, so no other test may use it before.
func TestPolicyParameters(t *testing.T) {
	t.Parallel()
	const team, namespace, outside = "team", "inside", "outside"
	cluster := testcluster.New(t, testcluster.Options{Etcd: testcluster.EtcdOptions{Unsafe: true}})
	borough := cluster.NewBorough(t, testcluster.BoroughOptions{Etcd: cluster.Etcd, ServerFlags: []string{"--etcd-prefix=/borough"}})
	for name, labels := range map[string]map[string]string{namespace: {"team": team}, outside: nil} {
		_, err := cluster.BoroughClient(t).TenancyV1().Namespaces().Create(t.Context(), &v1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}}, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
	}
	kubectl := cluster.Kubectl(t)
	kubectl.Run(t, "create", "configmap", team, "--from-literal=forbidden=a", "-n", "default")
	kubectl.RunWith(t, strings.ReplaceAll(paramPolicy, "TEAM", team), "apply", "-f", "-")
	create := func(namespace, label string) error {
		pod := newUnnamedPod()
		pod.Labels = map[string]string{label: ""}
		_, err := cluster.BoroughClient(t).TenancyV1().Pods(namespace).Create(t.Context(), pod, metav1.CreateOptions{})
		return err
	}
	await := func(label, want string) {
		t.Helper()
		poll.Eventually(t, func() string {
			err := create(namespace, label)
			if want == "" && err == nil || want != "" && err != nil && strings.Contains(err.Error(), want) {
				return ""
			}
			return fmt.Sprintf("create a Pod with the label %s: got %v, want %q", label, err, want)
		})
	}
	await("other", "not yet synced to use for admission")
	if answer := harness.NewHTTP(t, borough.Servers[0].Direct(cluster.AdminConfig())).Do(t, http.MethodGet, "/readyz", nil); answer.Code != http.StatusOK {
		t.Errorf("the server is not ready: %s", answer)
	}
	if err := create(outside, "other"); err != nil {
		t.Errorf("in a Namespace that the policy does not select: %v", err)
	}
	kubectl.Run(t, "create", "clusterrole", "parameters", "--verb=get,list,watch", "--resource=configmaps")
	kubectl.Run(t, "create", "clusterrolebinding", "parameters", "--clusterrole=parameters", "--serviceaccount="+testcluster.SystemNamespace+":borough-apiserver")
	await("other", "")
	await("a", "the label is forbidden")
	// For each write, the server reads the parameters that do not exist.
	var writes sync.WaitGroup
	for range 50 {
		writes.Go(func() {
			err := create(namespace, "other")
			// On a busy machine a read takes longer than the second that the library gives it.
			if err != nil && (strings.Contains(err.Error(), "rate limiter") || !strings.HasSuffix(err.Error(), "context deadline exceeded")) {
				t.Error(err)
			}
		})
	}
	writes.Wait()
	createWithoutOpenAPI(t, cluster, borough)
}

// createWithoutOpenAPI applies a policy that needs the OpenAPI models of our kinds at a server
// that has started while kube-apiserver does not have them.
func createWithoutOpenAPI(t *testing.T, cluster *testcluster.Cluster, borough *testcluster.Borough) {
	t.Helper()
	const team, stage = "models", "open"
	kubectl := cluster.Kubectl(t)
	kubectl.Run(t, "delete", "apiservice", v1.SchemeGroupVersion.Version+"."+v1.GroupName)
	poll.Eventually(t, func() string {
		if harness.GetOK(t.Context(), cluster.AdminConfig(), "/openapi/v3/apis/"+v1.SchemeGroupVersion.String(), nil) == nil {
			return "kube-apiserver has the OpenAPI document of our group"
		}
		return ""
	})
	server, err := borough.AddServer(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	client, err := versioned.NewForConfig(server.Direct(cluster.AdminConfig()))
	if err != nil {
		t.Fatal(err)
	}
	ns := &v1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: team, Labels: map[string]string{"team": team, "stage": stage}}}
	if _, err := client.TenancyV1().Namespaces().Create(t.Context(), ns, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	kubectl.RunWith(t, strings.ReplaceAll(policies, "TEAM", team), "apply", "-f", "-")
	awaitStage(t, client, team, stage)
}
