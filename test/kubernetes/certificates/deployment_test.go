// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package certificates

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/borough-io/borough/test/harness"
	"github.com/borough-io/borough/test/kubernetes/testcluster"
)

const (
	serverName  = "borough-apiserver"
	serviceHost = serverName + "." + testcluster.SystemNamespace + ".svc" // verified by the aggregator
	certSecret  = "borough-apiserver-tls"
	apiService  = "/apis/apiregistration.k8s.io/v1/apiservices/v1.tenancy.borough.io"
	// lifetime is that of the certificates that are rotated. A rotation takes all of it. The
	// servers have a fifth of it to load the next certificate before the old one expires.
	lifetime = 2 * time.Minute
	// timeout bounds each wait. The longest is for a rotation.
	timeout = 6 * time.Minute
)

// deployment is a deployment of Borough whose servers make their certificates.
type deployment struct {
	cluster *testcluster.Cluster
	client  kubernetes.Interface
	servers []*server
}

// deploy deploys two servers.
func deploy(t *testing.T, cluster *testcluster.Cluster, flags ...string) *deployment {
	t.Helper()
	d := &deployment{cluster: cluster, client: cluster.Client(t)}
	d.apply(t, "--server-side")
	await(t, "rights of the servers", d.granted)
	for _, name := range []string{serverName + "-0", serverName + "-1"} {
		port := d.addServer(t, name, append(flags,
			"--serving-cert-secret="+testcluster.SystemNamespace+"/"+certSecret,
			"--serving-cert-service="+testcluster.SystemNamespace+"/"+serverName)...)
		// The aggregator uses only the port. kube-apiserver rejects a loopback
		// address.
		_, err := d.client.DiscoveryV1().EndpointSlices(testcluster.SystemNamespace).Create(t.Context(), &discoveryv1.EndpointSlice{
			ObjectMeta: metav1.ObjectMeta{
				Name:   name,
				Labels: map[string]string{discoveryv1.LabelServiceName: serverName},
			},
			AddressType: discoveryv1.AddressTypeIPv4,
			Ports:       []discoveryv1.EndpointPort{{Name: new("https"), Port: new(int32(port)), Protocol: new(corev1.ProtocolTCP)}},
			Endpoints:   []discoveryv1.Endpoint{{Addresses: []string{"192.0.2.1"}}},
		}, metav1.CreateOptions{})
		if err != nil {
			t.Fatalf("make the server a backend of the Service: %v", err)
		}
	}
	for _, s := range d.servers {
		await(t, "server at "+s.address, func(ctx context.Context) error { return d.ready(ctx, s.address) })
	}
	d.awaitAPI(t)
	return d
}

// awaitAPI waits until the cluster serves Borough's API.
func (d *deployment) awaitAPI(t *testing.T) {
	t.Helper()
	await(t, "API", func(ctx context.Context) error {
		_, err := d.cluster.BoroughClient(t).TenancyV1().Namespaces().List(ctx, metav1.ListOptions{})
		return err
	})
}

// apply applies the manifests, which grant all the rights that the servers
// have.
func (d *deployment) apply(t *testing.T, flags ...string) {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	manifests, err := filepath.Rel(dir, filepath.Join(harness.Root, "artifacts", "deploy"))
	if err != nil {
		t.Fatal(err)
	}
	kustomization := fmt.Sprintf("resources: [%s/base]\ncomponents: [%s/components/self-signed]\n", manifests, manifests)
	if err := os.WriteFile(filepath.Join(dir, "kustomization.yaml"), []byte(kustomization), 0o600); err != nil {
		t.Fatal(err)
	}
	d.cluster.Kubectl(t).Run(t, append([]string{"apply", "--kustomize=" + dir}, flags...)...)
}

func (d *deployment) secret(t *testing.T) *corev1.Secret {
	t.Helper()
	secret, err := d.client.CoreV1().Secrets(testcluster.SystemNamespace).Get(t.Context(), certSecret, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return secret
}

// granted returns an error until the servers have their rights: RBAC applies a
// new role after a short delay.
func (d *deployment) granted(ctx context.Context) error {
	for _, needed := range []authorizationv1.ResourceAttributes{
		{Verb: "get", Resource: "secrets", Namespace: testcluster.SystemNamespace, Name: certSecret},
		{Verb: "get", Resource: "configmaps", Namespace: metav1.NamespaceSystem, Name: "extension-apiserver-authentication"},
		{Verb: "patch", Group: "apiregistration.k8s.io", Resource: "apiservices", Name: "v1.tenancy.borough.io"},
	} {
		review, err := d.client.AuthorizationV1().SubjectAccessReviews().Create(ctx, &authorizationv1.SubjectAccessReview{
			Spec: authorizationv1.SubjectAccessReviewSpec{
				User:               "system:serviceaccount:" + testcluster.SystemNamespace + ":" + serverName,
				ResourceAttributes: &needed,
			},
		}, metav1.CreateOptions{})
		if err != nil {
			return err
		}
		if !review.Status.Allowed {
			return fmt.Errorf("the servers may not %s %s yet", needed.Verb, needed.Resource)
		}
	}
	return nil
}

// server is a server behind the Service.
type server struct {
	process *harness.Process
	path    string
	args    []string
	address string
}

// addServer starts a server with the identity of its service account and returns
// its port. The server runs until the test ends.
func (d *deployment) addServer(t *testing.T, name string, flags ...string) (port int) {
	t.Helper()
	config, err := d.cluster.ServiceAccountConfig(t.Context(), testcluster.SystemNamespace, serverName)
	if err != nil {
		t.Fatal(err)
	}
	kubeconfig, err := d.cluster.WriteKubeconfig(name, config)
	if err != nil {
		t.Fatal(err)
	}
	path, err := harness.Binary(serverName)
	if err != nil {
		t.Fatal(err)
	}
	if port, err = harness.FreePort(); err != nil {
		t.Fatal(err)
	}
	s := &server{
		path: path,
		args: append(append(d.cluster.Etcd.ClientFlags(),
			"--etcd-prefix=/borough",
			"--kubeconfig="+kubeconfig,
			"--bind-address=127.0.0.1",
			"--secure-port="+strconv.Itoa(port)), flags...),
		address: net.JoinHostPort("127.0.0.1", strconv.Itoa(port)),
	}
	d.servers = append(d.servers, s)
	s.start(t)
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(s.process.Tail(60))
		}
		s.stop(t)
	})
	return port
}

// start starts the server, again after stop.
func (s *server) start(t *testing.T, flags ...string) {
	t.Helper()
	var err error
	if s.process, err = harness.StartProcess(s.path, append(slices.Clone(s.args), flags...)...); err != nil {
		t.Fatal(err)
	}
}

func (s *server) stop(t *testing.T) {
	t.Helper()
	if err := s.process.Stop(); err != nil {
		t.Error(err)
	}
}

// get requests a path from the server, without verifying its certificate.
func (s *server) get(ctx context.Context, path string) (code int, body string, err error) {
	return get(ctx, "https://"+s.address+path, &tls.Config{InsecureSkipVerify: true})
}

func get(ctx context.Context, url string, config *tls.Config) (code int, body string, err error) {
	transport := &http.Transport{TLSClientConfig: config}
	defer transport.CloseIdleConnections()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return 0, "", err
	}
	client := http.Client{Transport: transport, Timeout: 10 * time.Second}
	response, err := client.Do(request)
	if err != nil {
		return 0, "", err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	return response.StatusCode, string(text), err
}

// ready returns an error unless the server is ready, verified as the aggregator
// does, with the CAs in the APIService.
func (d *deployment) ready(ctx context.Context, address string) error {
	trusted, err := d.trusted(ctx)
	if err != nil {
		return err
	}
	code, body, err := get(ctx, "https://"+address+"/readyz", &tls.Config{RootCAs: trusted.pool(), ServerName: serviceHost})
	if err != nil {
		return err
	}
	if code != http.StatusOK {
		return fmt.Errorf("/readyz answers %d: %s", code, body)
	}
	return nil
}

// bundle has the CAs in the APIService.
type bundle []*x509.Certificate

func (b bundle) pool() *x509.CertPool {
	pool := x509.NewCertPool()
	for _, ca := range b {
		pool.AddCert(ca)
	}
	return pool
}

// trusts reports whether one of the CAs signed the certificate.
func (b bundle) trusts(cert *x509.Certificate) bool {
	_, err := cert.Verify(x509.VerifyOptions{DNSName: serviceHost, Roots: b.pool()})
	return err == nil
}

// check returns an error if the CAs are not those of at most three certificates that
// servers have created.
func (b bundle) check() error {
	if len(b) > 3 {
		return fmt.Errorf("the caBundle has %d CAs", len(b))
	}
	for _, ca := range b {
		if !strings.HasPrefix(ca.Subject.CommonName, "borough-apiserver-ca@") {
			return fmt.Errorf("the caBundle has the CA %s", ca.Subject)
		}
	}
	return nil
}

// trusted returns the CAs in the APIService.
func (d *deployment) trusted(ctx context.Context) (bundle, error) {
	raw, err := d.client.Discovery().RESTClient().Get().AbsPath(apiService).DoRaw(ctx)
	if err != nil {
		return nil, fmt.Errorf("read the APIService: %w", err)
	}
	var service struct{ Spec struct{ CABundle string } }
	if err := json.Unmarshal(raw, &service); err != nil {
		return nil, fmt.Errorf("decode the APIService: %w", err)
	}
	text, err := base64.StdEncoding.DecodeString(service.Spec.CABundle)
	if err != nil {
		return nil, fmt.Errorf("decode caBundle: %w", err)
	}
	return parse(text)
}

// trust replaces the caBundle in the APIService.
func (d *deployment) trust(t *testing.T, caBundle []byte) {
	t.Helper()
	d.patchAPIService(t, map[string]any{"caBundle": caBundle})
}

// patchAPIService changes fields in the spec of the APIService.
func (d *deployment) patchAPIService(t *testing.T, spec map[string]any) {
	t.Helper()
	patch, err := json.Marshal(map[string]any{"spec": spec})
	if err != nil {
		t.Fatal(err)
	}
	d.cluster.Kubectl(t).RunWith(t, string(patch), "patch", "apiservice", "v1.tenancy.borough.io", "--type=merge", "--patch-file=/dev/stdin")
}

// inStep returns an error unless the servers, the Secret and the APIService
// match.
func (d *deployment) inStep(ctx context.Context) error {
	secret, err := d.client.CoreV1().Secrets(testcluster.SystemNamespace).Get(ctx, certSecret, metav1.GetOptions{})
	if err != nil {
		return err
	}
	certs, err := parse(secret.Data[corev1.TLSCertKey])
	if err != nil {
		return fmt.Errorf("the Secret: %w", err)
	}
	if _, err := tls.X509KeyPair(secret.Data[corev1.TLSCertKey], secret.Data[corev1.TLSPrivateKeyKey]); err != nil {
		return fmt.Errorf("the Secret: %w", err)
	}
	trusted, err := d.trusted(ctx)
	if err != nil {
		return err
	}
	stored, err := parse(secret.Data["ca.crt"])
	if err != nil {
		return fmt.Errorf("the Secret: %w", err)
	}
	if !slices.EqualFunc(stored, trusted, (*x509.Certificate).Equal) {
		return errors.New("the Secret and the APIService have different CAs")
	}
	for _, s := range d.servers {
		served, err := presented(ctx, s.address)
		if err != nil {
			return err
		}
		if !served.Equal(certs[0]) {
			return fmt.Errorf("%s does not serve the certificate in the Secret", s.address)
		}
		if !trusted.trusts(served) {
			return fmt.Errorf("the caBundle does not trust the certificate of %s", s.address)
		}
	}
	return nil
}

// presented returns the certificate that a server presents.
func presented(ctx context.Context, address string) (*x509.Certificate, error) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	dialer := tls.Dialer{Config: &tls.Config{ServerName: serviceHost, InsecureSkipVerify: true}} // the caller verifies it
	conn, err := dialer.DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, fmt.Errorf("read the certificate of %s: %w", address, err)
	}
	defer conn.Close()
	return conn.(*tls.Conn).ConnectionState().PeerCertificates[0], nil
}
