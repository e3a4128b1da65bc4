// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package testcluster

import (
	"context"
	"crypto/x509/pkix"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	discoveryv1ac "k8s.io/client-go/applyconfigurations/discovery/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/borough-io/borough/pkg/generated/clientset/versioned"
	"github.com/borough-io/borough/test/harness"
	"github.com/borough-io/borough/test/poll"
)

const (
	// SystemNamespace is the cluster's namespace that Borough is deployed into.
	SystemNamespace = "borough-system"

	serverName     = "borough-apiserver" // the Service, and the server's service account
	controllerName = "borough-controller-manager"
	fieldManager   = "testcluster"
)

// BoroughOptions configure a deployment of Borough.
type BoroughOptions struct {
	// Etcd is the etcd that Borough uses. If it is nil, the server embeds etcd.
	Etcd *Etcd
	// ServerFlags and ControllerFlags are added to the default flags, which they override.
	ServerFlags, ControllerFlags []string
}

// ShortLease are flags of controllers for tests that wait until the Lease expires. The times
// are not shorter, because a process can stall for seconds on a slow machine.
var ShortLease = []string{"--leader-elect-lease-duration=30s", "--leader-elect-renew-deadline=25s"}

// Borough is a deployment in a cluster: the manifests in artifacts/deploy/base
// are applied to the cluster, and the processes run on this machine with the
// identities of their service accounts. There is one server and one controller;
// more can be added.
type Borough struct {
	Servers     []*BoroughServer
	Controllers []*BoroughController

	cluster *Cluster
	options BoroughOptions
	dir     string
	pki     pki
	ca      *CA // signs the serving certificate
}

// BoroughServer is a borough-apiserver behind the Service. Tests may kill,
// pause and restart it.
type BoroughServer struct {
	Process *harness.Process
	Port    int

	borough *Borough
	name    string
}

// BoroughController is a borough-controller-manager. Tests may kill, pause and
// restart it.
type BoroughController struct {
	Process *harness.Process

	borough *Borough
	name    string // of the kubeconfig: a controller ends when another one writes its own
	address string // serves health and metrics
}

// Deploy deploys Borough into the cluster and returns once the cluster serves
// its API, and the controller leads.
func (c *Cluster) Deploy(ctx context.Context, options BoroughOptions) (_ *Borough, err error) {
	dir, err := os.MkdirTemp(c.Dir, "borough-")
	if err != nil {
		return nil, fmt.Errorf("make a directory for Borough: %w", err)
	}
	b := &Borough{cluster: c, options: options, dir: dir, pki: pki{dir: filepath.Join(dir, "pki")}}
	defer func() {
		if err != nil {
			err = errors.Join(err, b.Stop())
		}
	}()
	// The aggregator verifies this name, regardless of the address.
	b.ca = b.pki.newCA("ca")
	b.pki.issue(b.ca, "serving", pkix.Name{CommonName: serverName}, serverName+"."+SystemNamespace+".svc", "localhost", "127.0.0.1")
	if b.pki.err != nil {
		return nil, fmt.Errorf("make the certificates of Borough: %w", b.pki.err)
	}
	if err := b.apply(ctx); err != nil {
		return nil, err
	}
	if _, err := b.AddServer(ctx); err != nil {
		return nil, err
	}
	if err := b.AwaitAPI(ctx); err != nil {
		return nil, err
	}
	if _, err := b.AddController(ctx); err != nil {
		return nil, err
	}
	if err := b.awaitLeader(ctx); err != nil {
		return nil, err
	}
	return b, nil
}

// NewBorough calls Deploy for a test and stops the processes when the test
// ends. If the test failed, it logs the processes' logs.
func (c *Cluster) NewBorough(t testing.TB, options BoroughOptions) *Borough {
	t.Helper()
	b, err := c.Deploy(t.Context(), options)
	if err != nil {
		t.Fatalf("deploy Borough: %v", err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(b.Logs())
		}
		if err := b.Stop(); err != nil {
			t.Errorf("stop Borough: %v", err)
		}
	})
	return b
}

// apply applies the manifests and sets the caBundle of the APIService.
func (b *Borough) apply(ctx context.Context) error {
	kubectl, err := b.cluster.newKubectl(b.cluster.AdminConfig())
	if err != nil {
		return fmt.Errorf("set up kubectl: %w", err)
	}
	base := filepath.Join(harness.Root, "artifacts", "deploy", "base")
	if _, stderr, err := kubectl.Try(ctx, "", "apply", "--server-side", "--kustomize="+base); err != nil {
		return fmt.Errorf("apply the manifests: %w\n%s", err, stderr)
	}
	patch, err := json.Marshal(map[string]any{"spec": map[string]any{"caBundle": b.ca.CertPEM}})
	if err != nil {
		return fmt.Errorf("encode the CA bundle: %w", err)
	}
	if _, stderr, err := kubectl.Try(ctx, "", "patch", "apiservice", "v1.tenancy.borough.io", "--patch="+string(patch)); err != nil {
		return fmt.Errorf("set the CA bundle: %w\n%s", err, stderr)
	}
	return nil
}

// AddServer starts one more server and returns once it is ready and a backend
// of the Service.
func (b *Borough) AddServer(ctx context.Context) (*BoroughServer, error) {
	port, err := harness.FreePort()
	if err != nil {
		return nil, err
	}
	s := &BoroughServer{Port: port, borough: b, name: fmt.Sprintf("%s-%d", serverName, len(b.Servers))}
	b.Servers = append(b.Servers, s)
	if err := s.Start(ctx); err != nil {
		return nil, err
	}
	return s, s.SetReady(ctx, true)
}

// Start starts or restarts the server and returns once it is ready.
func (s *BoroughServer) Start(ctx context.Context) error {
	b := s.borough
	kubeconfig, err := b.kubeconfig(ctx, s.name, serverName)
	if err != nil {
		return err
	}
	args := []string{
		"--kubeconfig=" + kubeconfig,
		"--bind-address=127.0.0.1",
		"--secure-port=" + strconv.Itoa(s.Port),
		"--tls-cert-file=" + b.pki.file("serving.crt"),
		"--tls-private-key-file=" + b.pki.file("serving.key"),
	}
	if b.options.Etcd != nil {
		args = append(args, b.options.Etcd.ClientFlags()...)
	} else {
		args = append(args, "--data-dir="+filepath.Join(b.dir, s.name))
	}
	path, err := harness.Binary(serverName)
	if err != nil {
		return err
	}
	anyone := &rest.Config{Host: localURL(s.Port), TLSClientConfig: rest.TLSClientConfig{CAData: b.ca.CertPEM}}
	s.Process, err = harness.StartReady(ctx, anyone, "/readyz", path, append(args, b.options.ServerFlags...)...)
	return err
}

// Direct returns a copy of a configuration of the cluster, for requests to this server
// that bypass kube-apiserver.
func (s *BoroughServer) Direct(config *rest.Config) *rest.Config {
	config = rest.CopyConfig(config)
	config.Host = localURL(s.Port)
	config.CAData = s.borough.ca.CertPEM
	return config
}

// SetReady sets whether the Service sends requests to the server, as a kubelet
// does according to the readiness probe. AddServer sets it.
func (s *BoroughServer) SetReady(ctx context.Context, ready bool) error {
	client, err := kubernetes.NewForConfig(s.borough.cluster.AdminConfig())
	if err != nil {
		return fmt.Errorf("make a client: %w", err)
	}
	// The aggregator uses only the port, and Network ignores the address.
	// kube-apiserver rejects an EndpointSlice with a loopback address.
	slice := discoveryv1ac.EndpointSlice(s.name, SystemNamespace).
		WithLabels(map[string]string{discoveryv1.LabelServiceName: serverName}).
		WithAddressType(discoveryv1.AddressTypeIPv4).
		WithPorts(discoveryv1ac.EndpointPort().WithName("https").WithPort(int32(s.Port)).WithProtocol(corev1.ProtocolTCP)).
		WithEndpoints(discoveryv1ac.Endpoint().WithAddresses("192.0.2.1").
			WithConditions(discoveryv1ac.EndpointConditions().WithReady(ready)))
	_, err = client.DiscoveryV1().EndpointSlices(SystemNamespace).Apply(ctx, slice, metav1.ApplyOptions{FieldManager: fieldManager, Force: true})
	if err != nil {
		return fmt.Errorf("make %s a backend of the Service: %w", s.name, err)
	}
	return nil
}

// AddController starts one more controller and returns once it is ready.
func (b *Borough) AddController(ctx context.Context) (*BoroughController, error) {
	port, err := harness.FreePort()
	if err != nil {
		return nil, err
	}
	m := &BoroughController{
		borough: b,
		name:    fmt.Sprintf("%s-%d", controllerName, len(b.Controllers)),
		address: net.JoinHostPort("127.0.0.1", strconv.Itoa(port)),
	}
	b.Controllers = append(b.Controllers, m)
	return m, m.Start(ctx)
}

// Start starts or restarts the controller and returns once it is ready.
func (m *BoroughController) Start(ctx context.Context) error {
	b := m.borough
	kubeconfig, err := b.kubeconfig(ctx, m.name, controllerName)
	if err != nil {
		return err
	}
	args := []string{
		"--kubeconfig=" + kubeconfig,
		"--leader-elect-resource-namespace=" + SystemNamespace,
		"--http-bind-address=" + m.address,
		// A controller that loses the Lease exits, and nothing restarts it here. On a slow
		// machine, a renewal can take longer than by default.
		"--leader-elect-lease-duration=2m",
		"--leader-elect-renew-deadline=90s",
	}
	path, err := harness.Binary(controllerName)
	if err != nil {
		return err
	}
	m.Process, err = harness.StartReady(ctx, &rest.Config{Host: "http://" + m.address}, "/readyz", path, append(args, b.options.ControllerFlags...)...)
	return err
}

// awaitLeader waits until a controller holds the Lease.
func (b *Borough) awaitLeader(ctx context.Context) error {
	client, err := kubernetes.NewForConfig(b.cluster.AdminConfig())
	if err != nil {
		return fmt.Errorf("make a client: %w", err)
	}
	err = poll.Until(ctx, startTimeout, func(ctx context.Context) error {
		lease, err := client.CoordinationV1().Leases(SystemNamespace).Get(ctx, controllerName, metav1.GetOptions{})
		if err != nil {
			return err
		}
		if holder := lease.Spec.HolderIdentity; holder == nil || *holder == "" {
			return errors.New("the Lease has no holder")
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("wait for a controller to lead: %w", err)
	}
	return nil
}

// Etcd returns the etcd that Borough uses, or nil if the server embeds it.
func (b *Borough) Etcd() *Etcd { return b.options.Etcd }

// CA returns the PEM certificate of the CA that signed the serving certificate.
func (b *Borough) CA() []byte { return b.ca.CertPEM }

// URL returns the URL at which the controller serves health and metrics.
func (m *BoroughController) URL() string { return "http://" + m.address }

func (b *Borough) kubeconfig(ctx context.Context, name, serviceAccount string) (string, error) {
	config, err := b.cluster.ServiceAccountConfig(ctx, SystemNamespace, serviceAccount)
	if err != nil {
		return "", err
	}
	return b.cluster.WriteKubeconfig(name, config)
}

// BoroughClient returns a typed client of Borough's API with all rights. Its
// requests go through the cluster's kube-apiserver.
func (c *Cluster) BoroughClient(t testing.TB) versioned.Interface {
	t.Helper()
	client, err := versioned.NewForConfig(c.AdminConfig())
	if err != nil {
		t.Fatalf("make a client: %v", err)
	}
	return client
}

// Stop stops the processes that still run. Applied objects stay in the cluster.
func (b *Borough) Stop() error {
	var errs []error
	for _, m := range b.Controllers {
		errs = append(errs, m.Process.StopRunning())
	}
	for _, s := range b.Servers {
		errs = append(errs, s.Process.StopRunning())
	}
	return errors.Join(errs...)
}

// Logs returns the end of each process's log.
func (b *Borough) Logs() string {
	var processes []*harness.Process
	for _, s := range b.Servers {
		processes = append(processes, s.Process)
	}
	for _, m := range b.Controllers {
		processes = append(processes, m.Process)
	}
	return tails(processes...)
}
