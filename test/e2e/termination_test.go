// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	v1 "github.com/borough-io/borough/pkg/apis/tenancy/v1"
	"github.com/borough-io/borough/test/harness"
	"github.com/borough-io/borough/test/poll"
)

// waitReason has patterns for the output of kubectl about a Namespace that stays
// Terminating. In the output, white space is replaced by single spaces, because
// kubectl breaks and indents lines.
type waitReason struct {
	get, wide, describe, yaml []string
}

// wantReason waits until the output of kubectl about a Namespace matches all
// patterns.
func wantReason(t *testing.T, b *harness.Borough, ns string, want waitReason) {
	t.Helper()
	for _, view := range []struct {
		args string
		want []string
	}{
		// The columns of core/v1 come first, as scripts expect.
		{"get " + ownNamespaces + " " + ns, append([]string{`^NAME STATUS AGE WAITING FOR ` + ns + ` Terminating \w+ `}, want.get...)},
		{"get ns " + ns + " -o wide", append([]string{`^NAME STATUS AGE WAITING FOR PROTECTED LAST PROGRESS DETAILS ` + ns}, want.wide...)},
		{"describe " + ownNamespaces + " " + ns, want.describe},
		{"get " + ownNamespaces + " " + ns + " -o yaml", append([]string{` termination: lastProgressTime: "20`}, want.yaml...)},
	} {
		var output string
		poll.Eventually(t, func() string {
			output = b.Kubectl(t, strings.Fields(view.args)...)
			for _, pattern := range view.want {
				if !regexp.MustCompile(pattern).MatchString(strings.Join(strings.Fields(output), " ")) {
					return fmt.Sprintf("kubectl %s: got\n%s\nwithout %q", view.args, output, pattern)
				}
			}
			return ""
		})
		t.Logf("kubectl %s\n%s", view.args, output)
	}
}

func TestWaitsForFinalizer(t *testing.T) {
	t.Parallel()
	ns := newNamespace(t, borough)
	createPod(t, borough, ns, newPod("web", func(p *v1.Pod) { p.Finalizers = []string{"example.com/backup"} }))
	createLimitRange(t, borough, ns, newLimitRange("l", item("Container", "max cpu=1")))
	deleteNamespace(t, borough, ns)
	wantReason(t, borough, ns, waitReason{
		get:  []string{`pods/web \(finalizer example.com/backup\)$`},
		wide: []string{` \d+s pods: web \(example.com/backup\); limitranges: l`},
		describe: []string{
			`Reason: SomeFinalizersRemain`,
			`Message: Some content in the namespace has finalizers remaining: example.com/backup in 1 resource instances`,
			`Termination: Last Progress Time: 20\S+ Remaining: Count: 1 Group: tenancy.borough.io Objects: Deletion Grace Period Seconds: 0 Deletion Timestamp: 20\S+ Finalizers: example.com/backup Name: web Resource: pods`,
			`Spec Finalizers: kubernetes`,
		},
		yaml: []string{`remaining: - count: 1 group: tenancy.borough.io objects: - deletionGracePeriodSeconds: 0 deletionTimestamp: "20\S+" finalizers: - example.com/backup name: web resource: pods - count: 1 group: tenancy.borough.io objects: - name: l resource: limitranges specFinalizers: - kubernetes`},
	})
	removeFinalizers(t, borough, ns, "web")
	poll.Eventually(t, gone(t, borough, ns))
}

func TestWaitsForGracePeriod(t *testing.T) {
	t.Parallel()
	ns := newNamespace(t, borough)
	createPod(t, borough, ns, newPod("web", func(p *v1.Pod) {
		p.Spec.NodeName, p.Spec.TerminationGracePeriodSeconds = "n", new(int64(3600))
	}))
	deleteNamespace(t, borough, ns)
	wantReason(t, borough, ns, waitReason{
		get:      []string{`pods/web \(grace period\)$`},
		wide:     []string{`pods: web \(grace period\)`},
		describe: []string{`Deletion Grace Period Seconds: 3600 Deletion Timestamp: 20\S+ Name: web`},
		yaml:     []string{`- deletionGracePeriodSeconds: 3600 deletionTimestamp: "20\S+" name: web resource: pods`},
	})
	borough.Kubectl(t, "delete", "po", "web", "-n", ns, "--grace-period=0", "--force")
	poll.Eventually(t, gone(t, borough, ns))
}

// TestUnseenContent checks that the conditions claim nothing about a Lease that no purge has
// reached: the controller does not discover it.
func TestUnseenContent(t *testing.T) {
	t.Parallel()
	ns := newNamespace(t, borough)
	createPod(t, borough, ns, newPod("web", func(p *v1.Pod) { p.Spec.NodeName = "n" }))
	leases := coreClient(t, borough, "").CoordinationV1().Leases(ns)
	if _, err := leases.Create(t.Context(), &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: "l", Finalizers: []string{"example.com/hold"}}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	deleteNamespace(t, borough, ns)
	poll.Eventually(t, hasConditions(t, borough, ns, map[v1.NamespaceConditionType][2]string{
		v1.NamespaceContentRemaining:    {"True", "Some resources are remaining: pods.tenancy.borough.io has 1 resource instances"},
		v1.NamespaceFinalizersRemaining: {"Unknown", "Not all content could be read: resources that only the server sees"},
	}))
	borough.Kubectl(t, "delete", "po", "web", "-n", ns, "--grace-period=0", "--force")
	poll.Eventually(t, hasConditions(t, borough, ns, map[v1.NamespaceConditionType][2]string{
		v1.NamespaceContentRemaining:    {"True", "Some resources are remaining: leases.coordination.k8s.io has 1 resource instances"},
		v1.NamespaceFinalizersRemaining: {"True", "Some content in the namespace has finalizers remaining: example.com/hold in 1 resource instances"},
	}))
	if _, err := leases.Patch(t.Context(), "l", types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	poll.Eventually(t, gone(t, borough, ns))
}

func TestWaitsForAgent(t *testing.T) {
	t.Parallel()
	namespaces := borough.Client(t).TenancyV1().Namespaces()
	created, err := namespaces.Create(t.Context(), &v1.Namespace{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "e2e-", Finalizers: []string{"example.com/hold"}},
		Spec:       v1.NamespaceSpec{Finalizers: []v1.FinalizerName{"openshift.com/origin"}},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	ns := created.Name
	createPod(t, borough, ns, newPod("web"))
	deleteNamespace(t, borough, ns)
	wantReason(t, borough, ns, waitReason{
		get:  []string{` finalizer openshift.com/origin, finalizer example.com/hold$`},
		wide: []string{` \d+s <none>$`},
		describe: []string{
			`Reason: ContentRemoved`,
			`Metadata Finalizers: example.com/hold Spec Finalizers: openshift.com/origin`,
		},
		yaml: []string{`metadataFinalizers: - example.com/hold specFinalizers: - openshift.com/origin`},
	})
	// The reason changes when an agent removes its finalizer.
	borough.Kubectl(t, "patch", ownNamespaces, ns, "--type=merge", "-p", `{"metadata":{"finalizers":null}}`)
	wantContains(t, borough.Kubectl(t, "get", ownNamespaces, ns), "finalizer openshift.com/origin\n")
	finalize(t, borough, ns)
	poll.Eventually(t, gone(t, borough, ns))
}

// TestWaitsForServers puts a proxy between the controller and the server, which
// acts as an aggregator with another API group and returns errors.
func TestWaitsForServers(t *testing.T) {
	t.Parallel()
	b := harness.New(t)
	if err := b.StartServer(t.Context()); err != nil {
		t.Fatal(err)
	}
	faults := newFaultProxy(t, b)
	faults.serveGroup("example.com")
	if err := b.StartController(t.Context(), "--kubeconfig="+faults.kubeconfig, "--purge-api-groups=*"); err != nil {
		t.Fatal(err)
	}

	t.Run("Rejected", func(t *testing.T) {
		ns := newNamespace(t, b)
		createLimitRange(t, b, ns, newLimitRange("l", item("Container", "max cpu=1")))
		limitRanges := api + "/namespaces/" + ns + "/limitranges"
		faults.set("POST "+api+"/namespaces/"+ns+"/namespacepurges", forbidden)
		faults.set("DELETE "+limitRanges+"/l", forbidden)
		deleteNamespace(t, b, ns)
		const message = `delete limitranges.tenancy.borough.io "l": limitranges.tenancy.borough.io is forbidden: they are kept`
		wantReason(t, b, ns, waitReason{
			get:      []string{`limitranges/l \(cannot be deleted\)$`},
			wide:     []string{`limitranges: l: ` + message},
			describe: []string{`Reason: ContentDeletionFailed`, `Last Error: ` + message + ` Objects: Name: l`},
			yaml:     []string{`lastError: '` + message + `'`},
		})
		faults.clear()
		poll.Eventually(t, gone(t, b, ns))
	})
	t.Run("Unreachable", func(t *testing.T) {
		ns := newNamespace(t, b)
		createPod(t, b, ns, newPod("web"))
		faults.set("GET /apis/example.com/v1/namespaces/"+ns+"/widgets", unavailable)
		deleteNamespace(t, b, ns)
		const message = `list widgets.example.com: service unavailable`
		wantReason(t, b, ns, waitReason{
			get:      []string{`widgets.example.com \(cannot be listed\)$`},
			wide:     []string{`widgets.example.com: ` + message},
			describe: []string{`Reason: ContentUnknown`, `Message: Not all content could be read: widgets.example.com`, `Last Error: ` + message + ` Resource: widgets`},
			yaml:     []string{`- group: example.com lastError: '` + message + `' resource: widgets`},
		})
		wantNoContent(t, b, ns) // in the group that can be reached
		faults.clear()
		poll.Eventually(t, gone(t, b, ns))
	})
	t.Run("Undiscovered", func(t *testing.T) {
		ns := newNamespace(t, b)
		createPod(t, b, ns, newPod("web"))
		faults.set("GET /apis/example.com/v1", unavailable)
		deleteNamespace(t, b, ns)
		const message = `service unavailable`
		wantReason(t, b, ns, waitReason{
			get:      []string{` discovery of example.com/v1$`},
			wide:     []string{` example.com/v1: ` + message},
			describe: []string{`Reason: DiscoveryFailed`, `Undiscovered: Group Version: example.com/v1 Last Error: ` + message},
			yaml:     []string{`undiscovered: - groupVersion: example.com/v1 lastError: ` + message},
		})
		wantNoContent(t, b, ns)
		faults.clear()
		poll.Eventually(t, gone(t, b, ns))
	})
}

// TestUndiscoveredContent deletes a Namespace with a Pod that leaves later, and with
// objects of the kinds that the server purges although the controller does not discover
// them. The purge that follows the Pod ends the termination: the controller sends no
// finalize or DELETE, which the server would refuse because of the other objects.
func TestUndiscoveredContent(t *testing.T) {
	t.Parallel()
	b, faults := startWithFaults(t)
	kubernetes := coreClient(t, b, "")
	for kind, create := range map[string]func(ns string) error{
		"Event": func(ns string) error {
			event := &corev1.Event{ObjectMeta: metav1.ObjectMeta{Name: "e"}, InvolvedObject: corev1.ObjectReference{Namespace: ns}}
			_, err := kubernetes.CoreV1().Events(ns).Create(t.Context(), event, metav1.CreateOptions{})
			return err
		},
		"Lease": func(ns string) error {
			_, err := kubernetes.CoordinationV1().Leases(ns).Create(t.Context(), &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: "l"}}, metav1.CreateOptions{})
			return err
		},
		"Role": func(ns string) error {
			_, err := kubernetes.RbacV1().Roles(ns).Create(t.Context(), &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Name: "r"}}, metav1.CreateOptions{})
			return err
		},
		"RoleBinding": func(ns string) error {
			_, err := kubernetes.RbacV1().RoleBindings(ns).Create(t.Context(), newRoleBinding("r", "ClusterRole", "view", "alice"), metav1.CreateOptions{})
			return err
		},
	} {
		t.Run(kind, func(t *testing.T) {
			ns := newNamespace(t, b)
			if err := create(ns); err != nil {
				t.Fatal(err)
			}
			createPod(t, b, ns, newPod("web", func(p *v1.Pod) { p.Finalizers = []string{"example.com/backup"} }))
			for _, request := range []string{"DELETE " + api + "/namespaces/" + ns, "PUT " + api + "/namespaces/" + ns + "/finalize"} {
				faults.set(request, func(w http.ResponseWriter, r *http.Request) {
					t.Errorf("the controller sent %s", request)
					faults.served.ServeHTTP(w, r)
				})
			}
			deleteNamespace(t, b, ns)
			wantReason(t, b, ns, waitReason{get: []string{`pods/web \(finalizer example.com/backup\)$`}})
			removeFinalizers(t, b, ns, "web")
			poll.Eventually(t, gone(t, b, ns))
		})
	}
}
