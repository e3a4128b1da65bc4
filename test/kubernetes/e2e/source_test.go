// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	v1 "github.com/borough-io/borough/pkg/apis/tenancy/v1"
	"github.com/borough-io/borough/pkg/generated/clientset/versioned"
	"github.com/borough-io/borough/pkg/source"
	"github.com/borough-io/borough/test/harness"
	"github.com/borough-io/borough/test/poll"
)

// TestSource runs borough-source as the DaemonSet of the manifests does, with the rights that
// they give it.
func TestSource(t *testing.T) {
	t.Parallel()
	const namespace, node = "borough-sources", "node-1"
	manifests := filepath.Join(harness.Root, "artifacts", "deploy", "components", "source")
	kubectl := cluster.Kubectl(t)
	for _, file := range []string{"namespace.yaml", "service-account.yaml", "rbac.yaml", "daemon-set.yaml"} {
		kubectl.Run(t, "apply", "--server-side", "--filename="+filepath.Join(manifests, file))
	}
	account, err := cluster.ServiceAccountConfig(t.Context(), namespace, "borough-source")
	if err != nil {
		t.Fatal(err)
	}
	kubeconfig, err := cluster.WriteKubeconfig("borough-source", account)
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "pods")
	process := startSource(t, filepath.Join(manifests, "daemon-set.yaml"), kubeconfig, dir, node)

	// The Namespace is missing, and the process may not create it.
	awaitOutput(t, process, "Waiting for the Namespace", `cannot create resource \"namespaces\" in API group \"tenancy.borough.io\"`)
	client, host := cluster.BoroughClient(t).TenancyV1(), cluster.Client(t)
	created, err := client.Namespaces().Create(t.Context(), &v1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}

	// The directory is missing, which the annotation and an Event report.
	identity := source.Identity{Kind: source.File, Location: dir, Node: node}
	awaitStatus := func(want string) {
		t.Helper()
		poll.Eventually(t, func() string {
			current, err := client.Namespaces().Get(t.Context(), namespace, metav1.GetOptions{})
			if err != nil {
				return err.Error()
			}
			if status := current.Annotations[identity.StatusAnnotation()]; !strings.Contains(status, want) || want == "" && strings.Contains(status, "problems") {
				return fmt.Sprintf("want the problem %q, the status is %q", want, status)
			}
			return ""
		})
	}
	awaitStatus("no such file or directory")
	awaitPods := func(want ...string) {
		t.Helper()
		poll.Eventually(t, func() string {
			pods, err := client.Pods(namespace).List(t.Context(), metav1.ListOptions{})
			if err != nil {
				return err.Error()
			}
			var got []string
			for _, pod := range pods.Items {
				got = append(got, pod.Name+" "+pod.Spec.NodeName+" "+pod.Spec.Containers[0].Image)
			}
			if !slices.Equal(got, want) {
				return fmt.Sprintf("got the Pods %q, want %q", got, want)
			}
			return ""
		})
	}
	write := func(name, image string) {
		t.Helper()
		text := fmt.Sprintf("apiVersion: v1\nkind: Pod\nmetadata: {name: %s}\nspec: {terminationGracePeriodSeconds: 0, containers: [{name: c, image: '%s', resources: {requests: {cpu: 2}}}]}\n", name, image)
		if err := os.WriteFile(filepath.Join(dir, "."+name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(filepath.Join(dir, "."+name), filepath.Join(dir, name+".yaml")); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	write("web", "nginx:1")
	awaitPods("web-node-1 node-1 nginx:1")
	awaitStatus("")
	write("web", "nginx:2") // a patch
	awaitPods("web-node-1 node-1 nginx:2")

	// A refusal, which is tried again when the LimitRange is gone.
	_, err = client.LimitRanges(namespace).Create(t.Context(), &v1.LimitRange{
		ObjectMeta: metav1.ObjectMeta{Name: "limits"},
		Spec: corev1.LimitRangeSpec{Limits: []corev1.LimitRangeItem{{
			Type: corev1.LimitTypePod, Max: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")},
		}}},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	write("db", "postgres:1")
	awaitStatus("maximum cpu usage per Pod")
	if err := client.LimitRanges(namespace).Delete(t.Context(), "limits", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	awaitPods("db-node-1 node-1 postgres:1", "web-node-1 node-1 nginx:2")
	if err := os.Remove(filepath.Join(dir, "web.yaml")); err != nil {
		t.Fatal(err)
	}
	awaitPods("db-node-1 node-1 postgres:1")
	awaitStatus("")

	// The Events and the Lease are in the cluster's namespace.
	events, err := host.EventsV1().Events(namespace).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var reasons []string
	for _, event := range events.Items {
		if event.Regarding.UID == created.UID && event.ReportingInstance == node {
			reasons = append(reasons, event.Reason)
		}
	}
	slices.Sort(reasons)
	if want := []string{"PodRefused", "SourceNotRead"}; !slices.Equal(reasons, want) {
		t.Errorf("got Events %q, want %q", reasons, want)
	}
	lease, err := host.CoordinationV1().Leases(namespace).Get(t.Context(), "borough-source-"+identity.ID(), metav1.GetOptions{})
	if err != nil || *lease.Spec.HolderIdentity == "" {
		t.Errorf("got the Lease %v, error %v", lease, err)
	}
	wantNoRights(t, versioned.NewForConfigOrDie(account))
	if err := process.StopRunning(); err != nil {
		t.Error(err)
	}
	for line := range strings.Lines(process.Output()) {
		if strings.Contains(line, " cannot ") && !strings.Contains(line, "Waiting for the Namespace") {
			t.Errorf("a right is missing: %s", line)
		}
	}
	if err := client.Namespaces().Delete(t.Context(), namespace, metav1.DeleteOptions{}); err != nil {
		t.Error(err)
	}
	poll.Eventually(t, gone(t, namespace))
}

// startSource starts borough-source with the arguments of the DaemonSet for a node.
func startSource(t *testing.T, daemonSet, kubeconfig, dir, node string) *harness.Process {
	t.Helper()
	data, err := os.ReadFile(daemonSet)
	if err != nil {
		t.Fatal(err)
	}
	var set appsv1.DaemonSet
	if err := yaml.UnmarshalStrict(data, &set); err != nil {
		t.Fatal(err)
	}
	args := []string{"--kubeconfig=" + kubeconfig, "-v=2"}
	for _, arg := range set.Spec.Template.Spec.Containers[0].Args {
		arg = strings.ReplaceAll(arg, "$(NODE_NAME)", node)
		arg = strings.ReplaceAll(arg, "/etc/borough/pods", dir)
		args = append(args, strings.ReplaceAll(arg, "=:10281", "=127.0.0.1:0"))
	}
	program, err := harness.Binary("borough-source")
	if err != nil {
		t.Fatal(err)
	}
	return harness.StartForTest(t, program, args...)
}

// awaitOutput waits until a line of the process has all parts.
func awaitOutput(t *testing.T, process *harness.Process, parts ...string) {
	t.Helper()
	poll.Eventually(t, func() string {
		for line := range strings.Lines(process.Output()) {
			if !slices.ContainsFunc(parts, func(part string) bool { return !strings.Contains(line, part) }) {
				return ""
			}
		}
		return fmt.Sprintf("no line has %q", parts)
	})
}

// wantNoRights checks that a source can reach no other Namespace, nor delete its own.
func wantNoRights(t *testing.T, client versioned.Interface) {
	t.Helper()
	other := newNamespace(t)
	tenancy := client.TenancyV1()
	_, readErr := tenancy.Pods(other).List(t.Context(), metav1.ListOptions{})
	_, getErr := tenancy.Namespaces().Get(t.Context(), other, metav1.GetOptions{})
	_, listErr := tenancy.Namespaces().List(t.Context(), metav1.ListOptions{})
	for what, err := range map[string]error{
		"list the Pods of another Namespace": readErr,
		"get another Namespace":              getErr,
		"list all Namespaces":                listErr,
		"delete its Namespace":               tenancy.Namespaces().Delete(t.Context(), "borough-sources", metav1.DeleteOptions{}),
	} {
		if !apierrors.IsForbidden(err) {
			t.Errorf("%s: got %v", what, err)
		}
	}
}
