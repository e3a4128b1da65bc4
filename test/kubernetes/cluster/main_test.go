// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

// Package cluster installs Borough in the Kubernetes cluster of a kubeconfig as
// docs/deploy.md says, disrupts it under load, and uninstalls it. The images must be
// available to the nodes. The tests need a cluster of their own, because they drain
// a node. They are skipped unless BOROUGH_CLUSTER_KUBECONFIG is set;
// hack/test-cluster.sh sets it.
package cluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/borough-io/borough/pkg/generated/clientset/versioned"
	"github.com/borough-io/borough/test/harness"
	"github.com/borough-io/borough/test/poll"
)

const (
	systemNamespace = "borough-system"
	apiService      = "v1.tenancy.borough.io"
	server          = "deployment/borough-apiserver"
	controller      = "deployment/borough-controller-manager"
	etcd            = "statefulset/borough-etcd"
	// selector selects all objects of a deployment of Borough.
	selector = "app.kubernetes.io/part-of=borough"

	// timeout bounds each wait. The nodes may have to pull images.
	timeout = 10 * time.Minute
	// attempt bounds each kubectl of a wait.
	attempt = "--timeout=90s"
)

func TestMain(m *testing.M) {
	harness.Main(m, func(m *testing.M) (int, error) { return m.Run(), nil })
}

// site is the cluster of the kubeconfig, which Borough is deployed into.
type site struct {
	kubeconfig    string
	config        *rest.Config
	client        kubernetes.Interface
	kubectl       *harness.Kubectl
	registry, tag string
	// nodeDown and nodeUp are commands that end and start the node whose name is
	// appended. They are empty if nodes cannot be ended.
	nodeDown, nodeUp string
	// nodes are the nodes that Pods can be scheduled to, members the number of
	// members of etcd.
	nodes, members int
}

// newSite connects to the cluster, which must not have Borough.
func newSite(t *testing.T) *site {
	t.Helper()
	kubeconfig := os.Getenv("BOROUGH_CLUSTER_KUBECONFIG")
	if kubeconfig == "" {
		t.Skip("BOROUGH_CLUSTER_KUBECONFIG is not set; make test-cluster sets it")
	}
	s := &site{kubeconfig: kubeconfig, registry: os.Getenv("BOROUGH_CLUSTER_REGISTRY"), tag: os.Getenv("BOROUGH_CLUSTER_TAG"), members: 1}
	s.nodeDown, s.nodeUp = os.Getenv("BOROUGH_CLUSTER_NODE_DOWN"), os.Getenv("BOROUGH_CLUSTER_NODE_UP")
	if s.tag == "" {
		s.tag = "latest"
	}
	path, err := harness.KubectlPath()
	if err != nil {
		t.Fatal(err)
	}
	// Credential plugins need the real HOME.
	s.kubectl = harness.NewKubectl(path, kubeconfig, os.Getenv("HOME")).WithEnv("KUBECACHEDIR=" + t.TempDir())
	if s.config, err = clientcmd.BuildConfigFromFlags("", kubeconfig); err != nil {
		t.Fatal(err)
	}
	s.config.QPS = -1 // no limit
	if s.client, err = kubernetes.NewForConfig(s.config); err != nil {
		t.Fatal(err)
	}
	if objects, err := s.objects(t.Context()); err != nil || objects != "" {
		t.Fatalf("the cluster must not have Borough: %v\n%s", err, objects)
	}
	if _, err := s.client.CoreV1().Namespaces().Get(t.Context(), systemNamespace, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Fatalf("the cluster must not have the namespace %s: %v", systemNamespace, err)
	}
	s.countNodes(t)
	t.Cleanup(func() {
		if t.Failed() {
			s.describe(t)
		}
	})
	return s
}

func (s *site) countNodes(t *testing.T) {
	t.Helper()
	nodes, err := s.client.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, node := range nodes.Items {
		schedulable := !node.Spec.Unschedulable
		for _, taint := range node.Spec.Taints {
			schedulable = schedulable && taint.Effect == corev1.TaintEffectPreferNoSchedule
		}
		if schedulable {
			s.nodes++
		}
	}
	if s.nodes >= 3 {
		s.members = 3
	}
	t.Logf("%d nodes, etcd with %d members", s.nodes, s.members)
}

// step runs a subtest that the next steps build on.
func (s *site) step(t *testing.T, name string, run func(*testing.T)) {
	t.Helper()
	if !t.Run(name, run) {
		t.FailNow() // with the deployment left as it is
	}
}

// tenancy returns a client of Borough with all rights, or with those of a user.
func (s *site) tenancy(t *testing.T, user string) versioned.Interface {
	t.Helper()
	config := rest.CopyConfig(s.config)
	config.Impersonate.UserName = user
	client, err := versioned.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// await repeats a kubectl until it succeeds.
func (s *site) await(t *testing.T, args ...string) {
	t.Helper()
	err := poll.Until(t.Context(), timeout, func(ctx context.Context) error {
		_, stderr, err := s.kubectl.Try(ctx, "", args...)
		if err != nil {
			return fmt.Errorf("%w: %s", err, stderr)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// awaitRollout waits until all Pods of a workload, or of all three, are ready and
// those that they replace have ended.
func (s *site) awaitRollout(t *testing.T, workloads ...string) {
	t.Helper()
	if len(workloads) == 0 {
		workloads = []string{etcd, server, controller}
	}
	for _, workload := range workloads {
		s.await(t, "--namespace="+systemNamespace, "rollout", "status", workload, attempt)
		err := poll.Until(t.Context(), timeout, func(context.Context) error {
			for _, pod := range s.pods(t, workload) {
				if pod.DeletionTimestamp != nil {
					return fmt.Errorf("Pod %s has not ended", pod.Name)
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

// awaitGone waits until get returns NotFound.
func awaitGone(t *testing.T, what string, get func(context.Context) error) {
	t.Helper()
	err := poll.Until(t.Context(), timeout, func(ctx context.Context) error {
		switch err := get(ctx); {
		case apierrors.IsNotFound(err):
			return nil
		case err != nil:
			return err
		}
		return errors.New("it still exists")
	})
	if err != nil {
		t.Errorf("deletion of %s: %v", what, err)
	}
}

// awaitTrue waits until a condition is true, without an error.
func awaitTrue(t *testing.T, what string, condition func(context.Context) (bool, error)) {
	t.Helper()
	err := poll.Until(t.Context(), timeout, func(ctx context.Context) error {
		done, err := condition(ctx)
		if err == nil && !done {
			err = errors.New("not yet")
		}
		return err
	})
	if err != nil {
		t.Fatalf("wait until %s: %v", what, err)
	}
}

// pods returns the Pods of a workload.
func (s *site) pods(t *testing.T, workload string) []corev1.Pod {
	t.Helper()
	_, name, _ := strings.Cut(workload, "/")
	pods, err := s.client.CoreV1().Pods(systemNamespace).List(t.Context(), metav1.ListOptions{LabelSelector: "app.kubernetes.io/name=" + name})
	if err != nil {
		t.Fatal(err)
	}
	return pods.Items
}

// objects returns the names of all objects of Borough in the cluster.
func (s *site) objects(ctx context.Context) (string, error) {
	resources, stderr, err := s.kubectl.Try(ctx, "", "api-resources", "--verbs=list", "--cached=false", "--output=name")
	if err != nil {
		return "", fmt.Errorf("%w: %s", err, stderr)
	}
	list := strings.Join(strings.Fields(resources), ",")
	objects, stderr, err := s.kubectl.Try(ctx, "", "get", list, "--all-namespaces", "--selector="+selector, "--output=name", "--ignore-not-found")
	if err != nil {
		return "", fmt.Errorf("%w: %s", err, stderr)
	}
	return objects, nil
}

// describe logs the state of a deployment after a failure.
func (s *site) describe(t *testing.T) {
	for _, args := range [][]string{
		{"get", "pods", "--output=wide"},
		{"get", "events", "--field-selector=type=Warning"},
		{"logs", "--selector=" + selector, "--prefix", "--tail=15"},
	} {
		stdout, stderr, _ := s.kubectl.Try(context.Background(), "", append(args, "--namespace="+systemNamespace)...)
		t.Logf("kubectl %s:\n%s%s", strings.Join(args, " "), stdout, stderr)
	}
}
