// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	clientv3 "go.etcd.io/etcd/client/v3"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"

	v1 "github.com/borough-io/borough/pkg/apis/tenancy/v1"
	"github.com/borough-io/borough/pkg/storage/storagetest"
	"github.com/borough-io/borough/test/e2e/harness"
)

const metadataAuditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
rules:
- level: Metadata
  omitStages: [RequestReceived]
`

// purgeable is a Borough on an etcd that the test can look into, which keeps an
// audit log.
type purgeable struct {
	*harness.Borough
	etcd     *clientv3.Client
	auditLog string
}

func newPurgeable(t *testing.T) *purgeable {
	t.Helper()
	url := storagetest.StartGRPC(t)
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{url}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })

	dir := t.TempDir()
	policy := filepath.Join(dir, "policy.yaml")
	if err := os.WriteFile(policy, []byte(metadataAuditPolicy), 0o600); err != nil {
		t.Fatal(err)
	}
	b := &purgeable{harness.New(t), client, filepath.Join(dir, "audit.log")}
	if err := b.StartServer(t.Context(), "--etcd-servers="+url, "--audit-policy-file="+policy, "--audit-log-path="+b.auditLog); err != nil {
		t.Fatal(err)
	}
	return b
}

// keys returns the keys of the content of a Namespace, or of all there is if the
// name is empty, with their revisions.
func (b *purgeable) keys(t *testing.T, namespace string) map[string]int64 {
	t.Helper()
	response, err := b.etcd.Get(t.Context(), "/registry/", clientv3.WithPrefix(), clientv3.WithKeysOnly())
	if err != nil {
		t.Fatal(err)
	}
	keys := map[string]int64{}
	for _, kv := range response.Kvs {
		if strings.Contains(string(kv.Key), "/"+namespace+"/") || namespace == "" {
			keys[string(kv.Key)] = kv.ModRevision
		}
	}
	return keys
}

// audited returns the events about purges of the Namespace, in which the wanted
// number has to come.
func (b *purgeable) audited(t *testing.T, namespace string, want int) (events []auditv1.Event) {
	t.Helper()
	harness.Eventually(t, func() string {
		log, err := os.ReadFile(b.auditLog)
		if err != nil {
			return err.Error()
		}
		events = nil
		for line := range bytes.Lines(log) {
			var event auditv1.Event
			if json.Unmarshal(line, &event) == nil && event.ObjectRef != nil &&
				event.ObjectRef.Resource == "namespacepurges" && event.ObjectRef.Namespace == namespace {
				events = append(events, event)
			}
		}
		if len(events) != want {
			return fmt.Sprintf("%d purges are in the audit log, want %d", len(events), want)
		}
		return ""
	})
	return events
}

func newPurge(uid types.UID) *v1.NamespacePurge {
	return &v1.NamespacePurge{Spec: v1.NamespacePurgeSpec{NamespaceUID: uid}}
}

// TestNamespacePurge has a Namespace held up by all that can hold content, and
// takes the way out.
func TestNamespacePurge(t *testing.T) {
	t.Parallel()
	b := newPurgeable(t)
	client := b.Client(t).TenancyV1()
	name := newNamespace(t, b.Borough)
	ns, err := client.Namespaces().Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	createPod(t, b.Borough, name, newPod("free"))
	createPod(t, b.Borough, name, newPod("held", func(p *v1.Pod) { p.Finalizers = []string{"example.com/backup"} }))
	createPod(t, b.Borough, name, newPod("running", func(p *v1.Pod) { p.Spec.NodeName = "gone" }))
	limits := newLimitRange("limits")
	limits.Finalizers = []string{"example.com/billing"}
	createLimitRange(t, b.Borough, name, limits)
	bystander := newNamespace(t, b.Borough)
	createPod(t, b.Borough, bystander, newPod("held", func(p *v1.Pod) { p.Finalizers = []string{"example.com/backup"} }))

	create := func(in string, purge *v1.NamespacePurge, options metav1.CreateOptions) (*v1.NamespacePurge, error) {
		return client.NamespacePurges(in).Create(t.Context(), purge, options)
	}
	refuse := func(what string, before map[string]int64, err error, code int32, text string) {
		t.Helper()
		wantContains(t, wantCode(t, err, code).Message, text)
		if diff := cmp.Diff(before, b.keys(t, "")); diff != "" {
			t.Errorf("%s has changed something (-before +after):\n%s", what, diff)
		}
	}
	before := b.keys(t, "")
	_, err = create(name, newPurge(ns.UID), metav1.CreateOptions{})
	refuse("a purge while Active", before, err, 409, "a namespace that is being deleted, this one is not; delete it first")

	deleteNamespace(t, b.Borough, name)
	before = b.keys(t, "")
	_, err = create("nowhere", newPurge(ns.UID), metav1.CreateOptions{})
	refuse("a purge of nothing", before, err, 404, `namespaces.tenancy.borough.io "nowhere" not found`)
	_, err = create(name, newPurge("another"), metav1.CreateOptions{})
	refuse("a purge of another incarnation", before, err, 409, "this one has UID "+string(ns.UID))
	_, err = create(name, newPurge(""), metav1.CreateOptions{})
	refuse("a purge without a UID", before, err, 422, "spec.namespaceUID: Required value")

	dryRun, err := create(name, newPurge(ns.UID), metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(before, b.keys(t, "")); diff != "" {
		t.Errorf("a dry run has changed something (-before +after):\n%s", diff)
	}
	wantEqual(t, "what a dry run tells", dryRun.Status, v1.NamespacePurgeStatus{Purged: []v1.PurgedResource{
		{Group: "tenancy.borough.io", Resource: "pods", Count: 3, Held: 2, Objects: []v1.RemainingObject{
			{Name: "held", Finalizers: []string{"example.com/backup"}}, {Name: "running"},
		}},
		{Group: "tenancy.borough.io", Resource: "limitranges", Count: 1, Held: 1, Objects: []v1.RemainingObject{
			{Name: "limits", Finalizers: []string{"example.com/billing"}},
		}},
	}})

	if err := b.StartController(t.Context()); err != nil {
		t.Fatal(err)
	}
	harness.Eventually(t, func() string { // it has come as far as it can
		output := b.Kubectl(t, "get", "ns", name)
		if !strings.Contains(output, "2 pods (finalizer example.com/backup)") {
			return output
		}
		return ""
	})
	// With kubectl: look first, then send what it has shown.
	manifest := fmt.Sprintf("{apiVersion: tenancy.borough.io/v1, kind: NamespacePurge, metadata: {namespace: %s}, spec: {namespaceUID: %s}}", name, ns.UID)
	shown, stderr, err := b.TryKubectl(t, manifest, "create", "--dry-run=server", "-o", "yaml", "-f", "-")
	if err != nil {
		t.Fatalf("kubectl create --dry-run=server: %v\n%s", err, stderr)
	}
	wantContains(t, stderr, "Warning: would remove 3 objects, 3 of them held by finalizers or a grace period: what these stood for may be left behind")
	pattern := `kind: NamespacePurge metadata: name: \S+ namespace: \S+ spec: namespaceUID: \S+ status: purged: ` +
		`- count: 2 group: tenancy.borough.io held: 2 objects: - deletionGracePeriodSeconds: 0 deletionTimestamp: "20\S+" finalizers: - example.com/backup name: held ` +
		`- deletionGracePeriodSeconds: 30 deletionTimestamp: "20\S+" name: running resource: pods ` +
		`- count: 1 group: tenancy.borough.io held: 1 objects: - finalizers: - example.com/billing name: limits resource: limitranges$`
	if words := strings.Join(strings.Fields(shown), " "); !regexp.MustCompile(pattern).MatchString(words) {
		t.Errorf("kubectl create --dry-run=server says\n%s", shown)
	}
	if len(b.keys(t, name)) != 3 {
		t.Errorf("after dry runs there is %v", b.keys(t, name))
	}
	stdout, stderr, err := b.TryKubectl(t, shown, "create", "-f", "-")
	if err != nil {
		t.Fatalf("kubectl create: %v\n%s", err, stderr)
	}
	wantEqual(t, "kubectl create", stdout, "namespacepurge.tenancy.borough.io/"+name+" created\n")
	wantContains(t, stderr, "Warning: removed 3 objects, 3 of them held")
	if left := b.keys(t, name); len(left) > 0 {
		t.Errorf("after the purge there is %v", left)
	}
	harness.Eventually(t, gone(t, b.Borough, name))
	if key := "/registry/tenancy.borough.io/namespaces/" + name; b.keys(t, "")[key] != 0 {
		t.Errorf("%s is left", key)
	}
	if len(b.keys(t, bystander)) != 1 {
		t.Errorf("in another Namespace there is %v", b.keys(t, bystander))
	}

	const prefix = "namespacepurges.tenancy.borough.io/"
	var got []map[string]string
	for _, event := range b.audited(t, name, 6) {
		if event.Verb != "create" || event.User.Username == "" {
			t.Errorf("audited %+v", event)
		}
		if event.ResponseStatus.Code == 201 {
			annotations := map[string]string{}
			for key, value := range event.Annotations {
				if name, ok := strings.CutPrefix(key, prefix); ok {
					annotations[name] = value
				}
			}
			got = append(got, annotations)
		}
	}
	annotations := func(purged, held, dryRun string) map[string]string {
		return map[string]string{"namespace-uid": string(ns.UID), "purged": purged, "held": held, "dry-run": dryRun}
	}
	wantEqual(t, "annotations in the audit log", got, []map[string]string{
		annotations("pods=3,limitranges=1", "pods=2,limitranges=1", "true"),
		annotations("pods=2,limitranges=1", "pods=2,limitranges=1", "true"),
		annotations("pods=2,limitranges=1", "pods=2,limitranges=1", "false"),
	})
}

// TestNamespacePurgeIsARight has somebody try who may delete all there is.
func TestNamespacePurgeIsARight(t *testing.T) {
	t.Parallel()
	ns := newNamespace(t, alone)
	createPod(t, alone, ns, newPod("p", func(p *v1.Pod) { p.Finalizers = []string{"example.com/hold"} }))
	deleteNamespace(t, alone, ns)
	controller := harness.NewHTTP(t, alone.Config(t, "controller"))
	for _, query := range []string{"", "?dryRun=All"} {
		answer := controller.Do(t, "POST", api+"/namespaces/"+ns+"/namespacepurges"+query, toJSON(t, newPurge("x")), "Content-Type", asJSON)
		wantStatus(t, answer, 403, `cannot create resource "namespacepurges" in API group "tenancy.borough.io" in the namespace "`+ns+`"`)
	}
	if _, err := alone.Client(t).TenancyV1().Pods(ns).Get(t.Context(), "p", metav1.GetOptions{}); err != nil {
		t.Error(err)
	}
}

// TestNamespacePurgeRequests sends what is not a purge.
func TestNamespacePurgeRequests(t *testing.T) {
	t.Parallel()
	admin := alone.HTTP(t)
	in := api + "/namespaces/default/namespacepurges"
	for _, test := range []struct {
		method, path, body string
		code               int
		text               string
	}{
		{"GET", in, "", 405, "does not allow this method"},
		{"GET", in + "/x", "", 404, "could not find the requested resource"},
		{"DELETE", in, "", 405, "does not allow this method"},
		{"GET", api + "/namespacepurges", "", 404, "could not find the requested resource"},
		{"POST", in, `{"spec":{"namespaceUID":"x"},"metadata":{"namespace":"other"}}`, 400, "the namespace of the provided object does not match the namespace sent on the request"},
		{"POST", in, `{"spec":{"namespaceUID":"x"},"metadata":{"name":"a/b"}}`, 422, "metadata.name: Invalid value"},
		{"POST", in + "?fieldValidation=Strict", `{"spec":{"namespaceUID":"x","force":true}}`, 400, `unknown field "spec.force"`},
		{"POST", in, `{"kind":"Pod","apiVersion":"tenancy.borough.io/v1"}`, 400, "Pod in version \"v1\" cannot be handled as a NamespacePurge"},
		{"POST", in + "?dryRun=Some", `{"spec":{"namespaceUID":"x"}}`, 422, "dryRun"},
	} {
		answer := admin.Do(t, test.method, test.path, []byte(test.body), "Content-Type", asJSON)
		wantStatus(t, answer, test.code, test.text)
	}
}
