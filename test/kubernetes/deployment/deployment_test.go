// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package deployment

import (
	"crypto/ecdsa"
	"crypto/x509"
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	certutil "k8s.io/client-go/util/cert"

	"github.com/borough-io/borough/test/harness"
	"github.com/borough-io/borough/test/kubernetes/testcluster"
	"github.com/borough-io/borough/test/poll"
)

// TestDeployment deploys Borough as in docs/deploy.md, makes it use all its
// functions, and compares the rights that it used with those in the manifests.
func TestDeployment(t *testing.T) {
	s := newSite(t)
	s.kubectl.RunWith(t, keepPolicy, "apply", "-f", "-") // before a server could miss it
	s.deploy(t)
	for _, step := range []struct {
		name string
		do   func(*testing.T)
	}{
		{"check", s.testCheck},
		{"tenants", s.testTenants},
		{"what a purge runs into", s.testPurges},
		{"leadership moves", s.testLeadership},
		{"new certificate by hand", s.testNewCertificate},
		{"certificates of etcd issued again", s.testEtcdCertificates},
		{"the rest", s.testRest},
		{"every right is of use", s.testUsed},
		{"every right is needed", s.testNeeded},
		{"nothing has suffered", s.testRecovered},
	} {
		if !t.Run(step.name, step.do) {
			t.FailNow() // the next subtest would fail for the same reason
		}
	}
}

const hello = `apiVersion: tenancy.borough.io/v1
kind: Namespace
metadata:
  name: hello
---
apiVersion: tenancy.borough.io/v1
kind: LimitRange
metadata:
  name: limits
  namespace: hello
spec:
  limits:
  - type: Container
    default: {cpu: 500m}
---
apiVersion: tenancy.borough.io/v1
kind: Pod
metadata:
  name: web
  namespace: hello
spec:
  containers:
  - name: web
    image: example.com/web:1
`

// testCheck uses the deployment.
func (s *site) testCheck(t *testing.T) {
	s.run(t, "get", "apiservice", apiService)
	s.runWith(t, hello, "create", "-f", "-")
	s.run(t, "get", "namespaces.tenancy.borough.io")
	s.run(t, "get", "pods.tenancy.borough.io,limitranges.tenancy.borough.io", "--namespace=hello")
	s.run(t, "delete", "namespaces.tenancy.borough.io", "hello")
	if out := s.kubectl.Fails(t, "get", "namespaces.tenancy.borough.io", "hello"); !strings.Contains(out, "NotFound") {
		t.Errorf("kubectl delete returned, but: %s", out)
	}
	for _, kind := range []string{"pods", "limitranges"} {
		if out := s.run(t, "get", kind+".tenancy.borough.io", "--all-namespaces", "--output=name"); out != "" {
			t.Errorf("left: %s", out)
		}
	}
}

// testPurges purges content that can be deleted, content with finalizers, and
// content that a policy protects. The latter remains for now.
func (s *site) testPurges(t *testing.T) {
	mark := s.audit.mark(t)
	s.purgeFull(t)
	s.purgeHeld(t)
	s.purgeBlocked(t)
	used := func(verb string, resources ...string) string {
		grants := slices.DeleteFunc(s.grantsOf(t, controllerUser, role{name: controllerName}), func(g grant) bool {
			return g.verb != verb || !slices.Contains(resources, g.resource)
		})
		if lacks := s.audit.lacks(t, mark, grants, false); len(lacks) > 0 {
			return fmt.Sprintf("grants not used yet: %v", lacks)
		}
		return ""
	}
	poll.Eventually(t, func() string { return used("watch", "pods", "limitranges", "resourcequotas") })
	poll.Eventually(t, func() string {
		s.purgeAbandoned(t)
		s.awaitPurged(t)
		return used("delete", "namespaces")
	})
	s.purgeKept(t)
}

// testLeadership stops one controller and then the other. The remaining one
// purges.
func (s *site) testLeadership(t *testing.T) {
	leader := func() string {
		return s.kubectl.Run(t, "get", "lease", controllerName, "--namespace="+testcluster.SystemNamespace, "--output=jsonpath={.spec.holderIdentity}")
	}
	first := leader()
	s.controllers[0].stop(t)
	s.awaitPurge(t)
	s.controllers[0].start(t)
	s.controllers[0].awaitProbes(t)
	s.controllers[1].stop(t)
	s.awaitPurge(t)
	if last := leader(); last == first || last == "" {
		t.Errorf("the leader was %q and is %q", first, last)
	}
}

// awaitPurge purges a Namespace and waits for its removal.
func (s *site) awaitPurge(t *testing.T) {
	t.Helper()
	s.awaitGone(t, s.purge(t, harness.NewPod("pod"), newLimits("limits")))
}

// testNewCertificate makes the servers replace the certificate as in
// docs/deploy.md. It restarts the servers and the controller without streaming
// lists, as in a cluster that disables them.
func (s *site) testNewCertificate(t *testing.T) {
	t.Setenv("KUBE_FEATURE_WatchListClient", "false")
	before := s.servers[0].presented(t)
	scale := func(replicas int) {
		s.run(t, "scale", "--namespace="+testcluster.SystemNamespace, "deployment", serverName, fmt.Sprintf("--replicas=%d", replicas))
	}
	replicas := len(s.servers)
	scale(0)
	for _, p := range s.servers {
		p.kill(t)
	}
	s.run(t, "patch", "apiservice", apiService, "--type=merge", `--patch={"spec":{"caBundle":null}}`)
	scale(replicas)
	for _, p := range s.servers {
		p.start(t)
	}
	for _, p := range s.servers {
		p.awaitProbes(t)
	}
	s.awaitAnswer(t)
	s.awaitAPI(t)
	after := s.servers[0].presented(t)
	if after.PublicKey.(*ecdsa.PublicKey).Equal(before.PublicKey) {
		t.Error("the servers still use the old key")
	}
	trusted, err := certutil.ParseCertsPEM(s.trusted(t))
	if err != nil {
		t.Fatal(err)
	}
	for _, ca := range trusted {
		if before.CheckSignatureFrom(ca) == nil {
			t.Error("the APIService still trusts the old certificate")
		}
	}

	s.controllers[0].stop(t)
	s.controllers[0].start(t)
	s.controllers[0].awaitProbes(t)
	s.awaitPurge(t)
}

// testEtcdCertificates has the certificates of etcd issued again. Members and servers
// load them without a restart, and those that restart connect to those that do not.
func (s *site) testEtcdCertificates(t *testing.T) {
	secrets := s.client.CoreV1().Secrets(testcluster.SystemNamespace)
	var member *x509.Certificate
	for _, name := range []string{"borough-etcd-client-tls", "borough-etcd-tls"} {
		remove := []byte(`[{"op": "remove", "path": "/data"}]`)
		if _, err := secrets.Patch(t.Context(), name, types.JSONPatchType, remove, metav1.PatchOptions{}); err != nil {
			t.Fatal(err)
		}
		secret := s.awaitSecret(t, &corev1.SecretVolumeSource{SecretName: name, Items: []corev1.KeyToPath{{Key: corev1.TLSCertKey}}})
		certs, err := certutil.ParseCertsPEM(secret.Data[corev1.TLSCertKey])
		if err != nil {
			t.Fatal(err)
		}
		member = certs[0]
	}
	for _, p := range slices.Concat(s.members, s.servers) {
		p.mount(t)
	}
	for _, p := range s.members {
		if presented := p.presentedAt(t, "client"); !presented.Equal(member) {
			t.Errorf("%s presents the certificate %s, want %s", p.name, presented.SerialNumber, member.SerialNumber)
		}
	}
	for _, p := range []*pod{s.members[0], s.servers[0]} {
		p.kill(t)
		p.start(t)
		p.awaitProbes(t)
	}
	s.awaitAnswer(t)
	s.awaitPurge(t)
}

// awaitAnswer waits until the aggregator forwards requests to the servers.
func (s *site) awaitAnswer(t *testing.T) {
	t.Helper()
	poll.Eventually(t, func() string {
		if _, err := s.tenancy(t).Namespaces().List(t.Context(), metav1.ListOptions{}); err != nil {
			return err.Error()
		}
		return ""
	})
}

// testRest uses the rights that the other steps do not use.
func (s *site) testRest(t *testing.T) {
	s.damageSecret(t)
	s.awaitTrust(t)
	s.askByToken(t)
}

// testRecovered checks that everything works after the rights are restored.
func (s *site) testRecovered(t *testing.T) {
	s.kubectl.Run(t, "delete", "validatingadmissionpolicybinding", "keep")
	s.servers[0].kill(t)
	s.servers[0].start(t)
	s.servers[0].awaitProbes(t)
	// After a restart, the controller retries without backoff.
	s.takeOver(t, s.controllers[0])
	s.controllers[0].awaitProbes(t)
	s.awaitAnswer(t)
	s.awaitPurged(t)
}
