// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package deployment

import (
	"encoding/json"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/kubernetes"

	"github.com/borough-io/borough/test/harness"
	"github.com/borough-io/borough/test/kubernetes/testcluster"
)

const (
	serverName     = "borough-apiserver"
	controllerName = "borough-controller-manager"
	certSecret     = "borough-apiserver-tls"
	apiService     = "v1.tenancy.borough.io"

	// timeout bounds each wait.
	timeout = 3 * time.Minute
)

// site is a cluster that Borough is deployed into. The Pods run on this
// machine.
type site struct {
	cluster *testcluster.Cluster
	client  kubernetes.Interface
	audit   *audit
	kubectl *harness.Kubectl
	// addresses maps the addresses of Pods to local ports, as pairs for a
	// strings.Replacer.
	addresses []string
	ports     []int // all allocated local ports

	servers, controllers []*pod
	members              []*pod // of etcd
	// purged are the Namespaces to be removed.
	purged []string
}

// newSite starts a cluster without Borough.
func newSite(t *testing.T) *site {
	t.Helper()
	// Build all programs before a test waits for a process.
	if _, err := harness.Binary(serverName); err != nil {
		t.Fatal(err)
	}
	s := &site{audit: newAudit(t)}
	s.cluster = testcluster.New(t, testcluster.Options{
		Etcd:           testcluster.EtcdOptions{Unsafe: true},
		APIServerFlags: s.audit.flags(),
	})
	s.client, s.kubectl = s.cluster.Client(t), s.cluster.Kubectl(t)
	return s
}

// deploy deploys the default manifests of Borough.
func (s *site) deploy(t *testing.T) {
	t.Helper()
	s.apply(t, filepath.Join(harness.Root, "artifacts", "deploy"))
	// Other manifests are valid, too.
	s.installCertManager(t)
	for _, other := range []string{"cert-manager", "own-certificates-and-etcd"} {
		s.apply(t, filepath.Join(harness.Root, "test", "kubernetes", "manifests", "testdata", other), "--dry-run=server")
	}

	stateful := s.statefulSet(t, "borough-etcd")
	for i := range *stateful.Spec.Replicas {
		member := s.newPod(t, fmt.Sprintf("%s-%d", stateful.Name, i), &stateful.Spec.Template)
		for port, local := range member.ports {
			s.addresses = append(s.addresses,
				fmt.Sprintf("%s.%s.%s.svc:%d", member.name, stateful.Spec.ServiceName, stateful.Namespace, port), fmt.Sprintf("127.0.0.1:%d", local))
		}
		s.members = append(s.members, member)
	}
	s.startPods(t, s.members...)
}

// apply applies a kustomization.
func (s *site) apply(t *testing.T, kustomization string, flags ...string) {
	t.Helper()
	s.run(t, append([]string{"apply", "--server-side", "--validate=strict", "--kustomize=" + kustomization}, flags...)...)
}

// startPods starts the controllers, and the servers after the other Pods that they
// need, and returns once the cluster serves the API.
func (s *site) startPods(t *testing.T, others ...*pod) {
	t.Helper()
	s.servers, s.controllers = s.pods(t, serverName), s.pods(t, controllerName)
	// RBAC must apply the roles before the servers start.
	s.awaitMay(t, slices.DeleteFunc(s.grants(t), func(g grant) bool { return g.user == viewer || g.user == editor }), true)
	// A kubelet starts a Pod when its Secrets have what it needs, which the controllers
	// issue.
	all := slices.Concat(s.controllers, others, s.servers)
	for _, p := range all {
		p.start(t)
	}
	for _, p := range s.servers {
		s.makeEndpoint(t, p)
	}
	for _, p := range all {
		p.awaitProbes(t)
	}
	s.awaitAPI(t)
}

// run runs kubectl as the cluster's administrator and logs its output.
func (s *site) run(t *testing.T, args ...string) string {
	t.Helper()
	return s.runWith(t, "", args...)
}

func (s *site) runWith(t *testing.T, stdin string, args ...string) string {
	t.Helper()
	out := s.kubectl.RunWith(t, stdin, args...)
	t.Logf("$ kubectl %s\n%s", strings.ReplaceAll(strings.Join(args, " "), harness.Root+"/", ""), out)
	return out
}

func (s *site) awaitAPI(t *testing.T) {
	t.Helper()
	s.run(t, "wait", "--for=condition=Available", "--timeout=120s", "apiservice/"+apiService)
	// kube-apiserver adds the group to its discovery only after that.
	if err := s.cluster.AwaitAPI(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func (s *site) statefulSet(t *testing.T, name string) *appsv1.StatefulSet {
	t.Helper()
	set, err := s.client.AppsV1().StatefulSets(testcluster.SystemNamespace).Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return set
}

// pods returns a pod for each replica of the Deployment, not started.
func (s *site) pods(t *testing.T, deployment string) []*pod {
	t.Helper()
	d, err := s.client.AppsV1().Deployments(testcluster.SystemNamespace).Get(t.Context(), deployment, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var pods []*pod
	for i := range *d.Spec.Replicas {
		pods = append(pods, s.newPod(t, fmt.Sprintf("%s-%d", d.Name, i), &d.Spec.Template))
	}
	return pods
}

// newPort returns a local port that no Pod uses.
func (s *site) newPort(t *testing.T) int {
	t.Helper()
	for {
		port, err := harness.FreePort()
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Contains(s.ports, port) {
			s.ports = append(s.ports, port)
			return port
		}
	}
}

// makeEndpoint makes a Pod a backend of the APIService's Service, as the
// endpoint slice controller does for Pods that the Service selects.
func (s *site) makeEndpoint(t *testing.T, p *pod) {
	t.Helper()
	name := s.kubectl.Run(t, "get", "apiservice", apiService, "--output=jsonpath={.spec.service.name}")
	service, err := s.client.CoreV1().Services(testcluster.SystemNamespace).Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if !labels.SelectorFromSet(service.Spec.Selector).Matches(labels.Set(p.template.Labels)) {
		t.Fatalf("the Service selects %v, which does not match %s", service.Spec.Selector, p.name)
	}
	port := service.Spec.Ports[0]
	_, err = s.client.DiscoveryV1().EndpointSlices(service.Namespace).Create(t.Context(), &discoveryv1.EndpointSlice{
		ObjectMeta:  metav1.ObjectMeta{Name: p.name, Labels: map[string]string{discoveryv1.LabelServiceName: service.Name}},
		AddressType: discoveryv1.AddressTypeIPv4,
		Ports: []discoveryv1.EndpointPort{{
			Name: &port.Name, Port: new(int32(p.port(t, port.TargetPort.StrVal))), Protocol: new(corev1.ProtocolTCP),
		}},
		// kube-apiserver rejects loopback addresses; Network ignores the address.
		Endpoints: []discoveryv1.Endpoint{{Addresses: []string{"192.0.2.1"}}},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatalf("make %s a backend of the Service: %v", p.name, err)
	}
}

// installCertManager installs the CRDs of cert-manager, so that the cluster
// validates our objects of these kinds.
func (s *site) installCertManager(t *testing.T) {
	t.Helper()
	const module = "github.com/cert-manager/cert-manager" // as pinned in go.mod
	out, err := exec.CommandContext(t.Context(), "go", "mod", "download", "-json", module).Output()
	if err != nil {
		t.Fatalf("find the CRDs of cert-manager: %v\n%s", err, out)
	}
	var found struct{ Dir string }
	if err := json.Unmarshal(out, &found); err != nil {
		t.Fatalf("find the CRDs of cert-manager: %v", err)
	}
	for _, kind := range []string{"certificates", "issuers"} {
		s.kubectl.Run(t, "apply", "--server-side", "--filename="+filepath.Join(found.Dir, "deploy", "crds", "cert-manager.io_"+kind+".yaml"))
	}
	s.kubectl.Run(t, "wait", "--for=condition=Established", "--timeout=120s",
		"crd/certificates.cert-manager.io", "crd/issuers.cert-manager.io")
}
