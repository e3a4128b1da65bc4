// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package deployment

import (
	"crypto/x509/pkix"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	certutil "k8s.io/client-go/util/cert"

	"github.com/borough-io/borough/test/harness"
	"github.com/borough-io/borough/test/kubernetes/testcluster"
	"github.com/borough-io/borough/test/poll"
)

// ownKustomization is an overlay of the example for existing certificates and
// an existing etcd. The addresses are those of the example.
const ownKustomization = `apiVersion: kustomize.config.k8s.io/v1beta1
kind: Kustomization
resources:
- %s
patches:
- patch: |-
    apiVersion: apiregistration.k8s.io/v1
    kind: APIService
    metadata:
      name: v1.tenancy.borough.io
    spec:
      caBundle: %s
`

// TestOwnCertificates deploys the example with certificates and an etcd that
// Borough does not manage, and replaces the certificates and their CA as in
// docs/deploy.md.
func TestOwnCertificates(t *testing.T) {
	s := newSite(t)
	etcd := testcluster.StartEtcdForTest(t, filepath.Join(s.cluster.Dir, "borough-etcd"), testcluster.EtcdOptions{Unsafe: true})
	for i := range 3 {
		s.addresses = append(s.addresses, fmt.Sprintf("https://etcd-%d.example.com:2379", i), etcd.Endpoints())
	}
	first := testcluster.NewCAForTest(t, "first")
	s.apply(t, ownOverlay(t, first.CertPEM))
	s.createSecret(t, "borough-etcd-client-tls", map[string]string{"ca.crt": etcd.CAFile(), "tls.crt": etcd.CertFile(), "tls.key": etcd.KeyFile()})
	s.createSecret(t, certSecret, ownCert(t, first))
	s.startPods(t)
	s.awaitPurge(t)

	second := testcluster.NewCAForTest(t, "second")
	s.apply(t, ownOverlay(t, slices.Concat(first.CertPEM, second.CertPEM)))
	s.kubectl.Run(t, "delete", "secret", certSecret, "--namespace="+testcluster.SystemNamespace)
	s.createSecret(t, certSecret, ownCert(t, second))
	certs, err := certutil.ParseCertsPEM(second.CertPEM)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range s.servers {
		p.mount(t)
		poll.Eventually(t, func() string {
			if err := p.presented(t).CheckSignatureFrom(certs[0]); err != nil {
				return fmt.Sprintf("%s serves with another certificate: %v", p.name, err)
			}
			return ""
		})
	}
	s.apply(t, ownOverlay(t, second.CertPEM))
	s.cluster.Network.Disconnect() // new connections verify the certificate again
	s.awaitRecovery(t)
	s.awaitAPI(t)
}

// awaitRecovery is awaitPurge after the connections to the servers have ended. If a check of
// the APIService failed because of that, kube-apiserver answers 503 until its next check.
func (s *site) awaitRecovery(t *testing.T) {
	t.Helper()
	var name string
	poll.Eventually(t, func() string {
		var err error
		name, err = s.tryPurge(t, harness.NewPod("pod"), newLimits("limits"))
		switch {
		case apierrors.IsServiceUnavailable(err):
			return err.Error()
		case err != nil:
			t.Fatal(err)
		}
		return ""
	})
	s.awaitGone(t, name)
}

// ownOverlay writes the overlay and returns its directory.
func ownOverlay(t *testing.T, caBundle []byte) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	example, err := filepath.Rel(dir, filepath.Join(harness.Root, "artifacts", "deploy", "overlays", "own-certificates-and-etcd"))
	if err != nil {
		t.Fatal(err)
	}
	encoded, err := json.Marshal(caBundle)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "kustomization.yaml"), fmt.Appendf(nil, ownKustomization, example, encoded), 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}

// ownCert makes a serving certificate and returns its files.
func ownCert(t *testing.T, ca *testcluster.CA) map[string]string {
	t.Helper()
	host := serverName + "." + testcluster.SystemNamespace + ".svc"
	cert, key, err := ca.Issue(pkix.Name{CommonName: host}, host)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	files := map[string]string{}
	for name, data := range map[string][]byte{corev1.TLSCertKey: cert, corev1.TLSPrivateKeyKey: key, "ca.crt": ca.CertPEM} {
		files[name] = filepath.Join(dir, name)
		if err := os.WriteFile(files[name], data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return files
}

func (s *site) createSecret(t *testing.T, name string, files map[string]string) {
	t.Helper()
	args := []string{"create", "secret", "generic", name, "--namespace=" + testcluster.SystemNamespace}
	for key, file := range files {
		args = append(args, "--from-file="+key+"="+file)
	}
	s.kubectl.Run(t, args...)
}
