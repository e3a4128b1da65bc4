// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package deployment

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/client-go/rest"
	certutil "k8s.io/client-go/util/cert"

	"github.com/borough-io/borough/pkg/certificates"
	"github.com/borough-io/borough/pkg/generated/clientset/versioned"
	"github.com/borough-io/borough/test/harness"
	"github.com/borough-io/borough/test/kubernetes/testcluster"
	"github.com/borough-io/borough/test/poll"
)

// removal removes from a role the grants with the verbs and resources, and
// makes Borough need them, so that it gets 403.
type removal struct {
	role                    string
	verbs, resources, names []string // all if empty
	// need is called once, again until the test succeeds.
	need, again func(*testing.T)
}

func (r removal) selects(g grant) bool {
	return g.role.name == r.role &&
		(len(r.verbs) == 0 || slices.Contains(r.verbs, g.verb)) &&
		(len(r.resources) == 0 || slices.Contains(r.resources, g.resource)) &&
		(len(r.names) == 0 || slices.Contains(r.names, g.name))
}

func (r removal) String() string {
	return strings.Join([]string{r.role, strings.Join(r.verbs, "+"), strings.Join(r.resources, "+"), strings.Join(r.names, "+")}, " ")
}

// removals lists the removals by rule, and by verb where the second verb is
// used only after the first.
func (s *site) removals() []removal {
	restart := func(p *pod) func(*testing.T) {
		return func(t *testing.T) { p.kill(t); p.start(t) }
	}
	// A controller that shuts down gracefully releases the Lease at once.
	handOver := func(p *pod) func(*testing.T) {
		return func(t *testing.T) { p.stop(t); p.start(t) }
	}
	server, controller := s.servers[0], s.controllers[0]
	const (
		auth       = "system:auth-delegator"
		reader     = "extension-apiserver-authentication-reader"
		cert       = serverName + "-serving-certificate"
		caBundle   = serverName + "-ca-bundle"
		leadership = controllerName + "-leader-election"
		etcdCerts  = controllerName + "-etcd-certificates"
	)
	listWatch := []string{"list", "watch"}
	content := []string{"pods", "limitranges", "resourcequotas"}
	return []removal{
		{role: "borough-view", need: func(t *testing.T) { s.tryRequests(t, viewer, slices.Concat(lookAround, lookInside)...) }},
		{role: "borough-edit", need: func(t *testing.T) { s.tryRequests(t, editor, writePods...) }},

		{role: controllerName, verbs: []string{"update"}, resources: []string{"namespaces/finalize"}, need: s.purgeBlocked},
		{role: controllerName, verbs: []string{"update"}, resources: []string{"namespaces/status"}, need: s.purgeHeld},
		{role: controllerName, verbs: []string{"create"}, resources: []string{"namespacepurges"}, need: s.purgeFull},
		{role: controllerName, verbs: []string{"list"}, resources: content, need: s.purgeHeld},
		{role: controllerName, verbs: []string{"watch"}, resources: content, need: s.purgeHeld},
		{role: controllerName, verbs: []string{"delete"}, resources: content, need: s.purgeKept},
		{role: controllerName, verbs: []string{"get"}, resources: []string{"namespaces"}, need: s.purgeKept},
		{role: controllerName, verbs: []string{"delete"}, resources: []string{"namespaces"}, again: s.purgeAbandoned},
		{role: controllerName, verbs: listWatch, resources: []string{"namespaces"}, need: handOver(controller)},
		{role: leadership, verbs: []string{"get"}, need: handOver(controller)},
		{role: leadership, verbs: []string{"create"}, need: func(t *testing.T) { s.takeOver(t, controller) }},
		// Without the right, a controller cannot release the Lease, and the next one would wait
		// until it expires.
		{role: leadership, verbs: []string{"update"}, need: func(t *testing.T) { s.takeOver(t, controller) }},

		{role: etcdCerts, verbs: []string{"get"}, need: s.damageEtcdSecrets},
		{role: etcdCerts, verbs: []string{"update"}, names: []string{"borough-etcd-tls", "borough-etcd-client-tls"}, need: s.damageEtcdSecrets},
		{role: etcdCerts, verbs: []string{"update"}, names: []string{"borough-etcd-ca"}, need: s.ageEtcdCA},
		{role: etcdCerts, verbs: listWatch, need: handOver(controller)},

		{role: serverName, resources: []string{"flowschemas/status"}, again: s.makeFlowSchema},
		{role: auth, resources: []string{"subjectaccessreviews"}, again: s.askAsViewer},
		{role: auth, resources: []string{"tokenreviews"}, again: s.askByToken},
		{role: cert, verbs: []string{"get"}, need: s.damageSecret},
		{role: cert, verbs: []string{"update"}, need: s.damageSecret},
		{role: caBundle, verbs: []string{"get"}, need: s.damageCABundle},
		{role: caBundle, verbs: []string{"patch"}, need: s.damageCABundle},
		{role: caBundle, verbs: listWatch, need: restart(server)},
		{role: cert, verbs: listWatch, need: restart(server)},
		{role: serverName, resources: []string{"flowschemas", "prioritylevelconfigurations"}, need: restart(server)},
		{role: serverName, resources: []string{
			"mutatingadmissionpolicies", "mutatingadmissionpolicybindings", "mutatingwebhookconfigurations",
			"validatingadmissionpolicies", "validatingadmissionpolicybindings", "validatingwebhookconfigurations",
		}, need: restart(server)},
		{role: reader, verbs: []string{"get"}, need: restart(server)},
		{role: reader, verbs: listWatch, need: restart(server)},
	}
}

// testNeeded removes all grants, some at a time, and waits until a request is
// forbidden for lack of each.
func (s *site) testNeeded(t *testing.T) {
	grants, taken := s.grants(t), map[grant]bool{}
	for _, r := range s.removals() {
		passed := t.Run(r.String(), func(t *testing.T) {
			removed := slices.DeleteFunc(slices.Clone(grants), func(g grant) bool { return !r.selects(g) })
			if len(removed) == 0 {
				t.Fatal("the manifests have no such right")
			}
			for _, g := range removed {
				taken[g] = true
			}
			giveBack := s.takeAway(t, removed)
			mark := s.audit.mark(t)
			if r.need != nil {
				r.need(t)
			}
			poll.Eventually(t, func() string {
				if r.again != nil {
					r.again(t)
				}
				if lacks := s.audit.lacks(t, mark, removed, true); len(lacks) > 0 {
					return fmt.Sprintf("no request was forbidden for lack of %v", lacks)
				}
				return ""
			})
			giveBack()
			s.awaitTrust(t)
		})
		if !passed {
			t.FailNow() // grants that are not restored would fail all later removals
		}
	}
	for _, g := range grants {
		if !taken[g] {
			t.Errorf("%s was never removed", g)
		}
	}
}

// testUsed compares the grants with the requests.
func (s *site) testUsed(t *testing.T) {
	grants := s.grants(t)
	for i, g := range grants {
		same := func(other grant) bool {
			other.role = g.role
			return other == g
		}
		if slices.ContainsFunc(grants[:i], same) {
			t.Errorf("granted twice: %s", g)
		}
	}
	poll.Eventually(t, func() string {
		lacks := s.audit.lacks(t, 0, grants, false)
		if len(lacks) == 0 {
			return ""
		}
		// Sometimes kube-apiserver is the first to set the status.
		if slices.ContainsFunc(lacks, func(g grant) bool { return g.resource == "flowschemas/status" }) {
			s.makeFlowSchema(t)
		}
		return fmt.Sprintf("granted, but not used: %v", lacks)
	})
	for _, e := range s.audit.events {
		if e.forbidden() && (e.User.Username == serverUser || e.User.Username == controllerUser) {
			t.Errorf("not granted, but needed: %s", &e)
		}
	}
}

// makeFlowSchema creates a FlowSchema with a missing priority level, which the
// servers report in its status.
func (s *site) makeFlowSchema(t *testing.T) {
	t.Helper()
	_, err := s.client.FlowcontrolV1().FlowSchemas().Create(t.Context(), &flowcontrolv1.FlowSchema{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "dangling-"},
		Spec: flowcontrolv1.FlowSchemaSpec{
			PriorityLevelConfiguration: flowcontrolv1.PriorityLevelConfigurationReference{Name: "nowhere"},
			MatchingPrecedence:         10000,
		},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
}

// askAsViewer makes the servers check rights that they have not checked yet.
func (s *site) askAsViewer(t *testing.T) {
	t.Helper()
	config, err := s.cluster.UserConfig(viewer)
	if err != nil {
		t.Fatal(err)
	}
	client, err := versioned.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	_, _ = client.TenancyV1().Pods("team-"+rand.String(8)).List(t.Context(), metav1.ListOptions{})
}

// askByToken connects to a server directly, as Prometheus does.
func (s *site) askByToken(t *testing.T) {
	t.Helper()
	token, err := s.cluster.ServiceAccountToken(t.Context(), "default", "default")
	if err != nil {
		t.Fatal(err)
	}
	config := &rest.Config{
		Host:            fmt.Sprintf("https://127.0.0.1:%d", s.servers[0].port(t, "https")),
		BearerToken:     token,
		TLSClientConfig: rest.TLSClientConfig{Insecure: true}, // not tested here
	}
	harness.NewHTTP(t, config).Do(t, http.MethodGet, "/metrics", nil)
}

// takeOver restarts a controller while no controller holds the Lease.
func (s *site) takeOver(t *testing.T, p *pod) {
	t.Helper()
	p.kill(t)
	err := s.client.CoordinationV1().Leases(testcluster.SystemNamespace).Delete(t.Context(), controllerName, metav1.DeleteOptions{})
	if err != nil && !apierrors.IsNotFound(err) { // the last controller may not have created it yet
		t.Fatal(err)
	}
	p.start(t)
}

// awaitTrust waits until the APIService has the CAs in the Secret.
func (s *site) awaitTrust(t *testing.T) {
	t.Helper()
	poll.Eventually(t, func() string {
		secret, err := s.client.CoreV1().Secrets(testcluster.SystemNamespace).Get(t.Context(), certSecret, metav1.GetOptions{})
		if err != nil {
			return err.Error()
		}
		if _, err := certutil.ParseCertsPEM(secret.Data["ca.crt"]); err != nil {
			return fmt.Sprintf("the CAs in the Secret: %v", err)
		}
		if !bytes.Equal(s.trusted(t), secret.Data["ca.crt"]) {
			return "caBundle differs from the Secret"
		}
		return ""
	})
}

// trusted returns the caBundle of the APIService.
func (s *site) trusted(t *testing.T) []byte {
	t.Helper()
	text, err := s.client.Discovery().RESTClient().Get().AbsPath("/apis/apiregistration.k8s.io/v1/apiservices/" + apiService).DoRaw(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var service struct{ Spec struct{ CABundle []byte } }
	if err := json.Unmarshal(text, &service); err != nil {
		t.Fatal(err)
	}
	return service.Spec.CABundle
}

func (s *site) damageSecret(t *testing.T) {
	t.Helper()
	s.damage(t, certSecret)
}

// damage changes the CA in a Secret.
func (s *site) damage(t *testing.T, secret string) {
	t.Helper()
	garbage := []byte(`{"data":{"ca.crt":"Z2FyYmFnZQ=="}}`)
	if _, err := s.client.CoreV1().Secrets(testcluster.SystemNamespace).Patch(t.Context(), secret, types.MergePatchType, garbage, metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
}

// damageEtcdSecrets changes the CA in the Secrets of etcd's certificates.
func (s *site) damageEtcdSecrets(t *testing.T) {
	t.Helper()
	for _, name := range []string{"borough-etcd-tls", "borough-etcd-client-tls"} {
		s.damage(t, name)
	}
}

// ageEtcdCA replaces the certificate of etcd's CA by one that has to be renewed.
func (s *site) ageEtcdCA(t *testing.T) {
	t.Helper()
	secrets := s.client.CoreV1().Secrets(testcluster.SystemNamespace)
	secret, err := secrets.Get(t.Context(), "borough-etcd-ca", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	ca, err := certificates.ParsePEM(secret.Data[corev1.TLSCertKey], secret.Data[corev1.TLSPrivateKeyKey])
	if err != nil {
		t.Fatal(err)
	}
	const year = 365 * 24 * time.Hour
	if ca, err = ca.RenewCA(time.Now().Add(-6*year), time.Now().Add(4*year)); err != nil {
		t.Fatal(err)
	}
	if secret.Data[corev1.TLSCertKey], secret.Data[corev1.TLSPrivateKeyKey], err = ca.EncodePEM(); err != nil {
		t.Fatal(err)
	}
	if _, err := secrets.Update(t.Context(), secret, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
}

func (s *site) damageCABundle(t *testing.T) {
	t.Helper()
	s.kubectl.Run(t, "patch", "apiservice", apiService, "--type=merge", `--patch={"spec":{"caBundle":null}}`)
}
