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
	"github.com/borough-io/borough/pkg/authorization/bootstrap"
	"github.com/borough-io/borough/pkg/storage/storagetest"
	"github.com/borough-io/borough/test/harness"
	"github.com/borough-io/borough/test/poll"
)

const metadataAuditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
rules:
- level: Metadata
  omitStages: [RequestReceived]
`

// purgeable is a Borough with an audit log, and with an etcd that the test can
// read.
type purgeable struct {
	*harness.Borough
	etcd     *clientv3.Client
	auditLog string
}

func newPurgeable(t *testing.T) *purgeable {
	t.Helper()
	url := storagetest.StartGRPC(t)
	client := storagetest.NewClient(t, url)

	b, log := startAudited(t, "--etcd-servers="+url)
	return &purgeable{b, client, log}
}

// startAudited starts a server with metadataAuditPolicy, and returns the path of its audit log.
func startAudited(t *testing.T, flags ...string) (b *harness.Borough, log string) {
	t.Helper()
	dir := t.TempDir()
	policy := filepath.Join(dir, "policy.yaml")
	if err := os.WriteFile(policy, []byte(metadataAuditPolicy), 0o600); err != nil {
		t.Fatal(err)
	}
	b, log = harness.New(t), filepath.Join(dir, "audit.log")
	if err := b.StartServer(t.Context(), append(flags, "--audit-policy-file="+policy, "--audit-log-path="+log)...); err != nil {
		t.Fatal(err)
	}
	return b, log
}

// keys returns the keys of the content of a Namespace with their revisions. If
// the name is empty, it returns all keys.
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

// audited waits for a number of audit events about purges of the Namespace, other
// than those of the controller, and returns them.
func (b *purgeable) audited(t *testing.T, namespace string, want int) (events []auditv1.Event) {
	t.Helper()
	poll.Eventually(t, func() string {
		log, err := os.ReadFile(b.auditLog)
		if err != nil {
			return err.Error()
		}
		events = nil
		for line := range bytes.Lines(log) {
			var event auditv1.Event
			if json.Unmarshal(line, &event) == nil && event.ObjectRef != nil &&
				event.ObjectRef.Resource == "namespacepurges" && event.ObjectRef.Namespace == namespace && event.User.Username != bootstrap.ControllerUser {
				events = append(events, event)
			}
		}
		if len(events) != want {
			return fmt.Sprintf("the audit log has %d purges, want %d", len(events), want)
		}
		return ""
	})
	return events
}

func newPurge(uid types.UID) *v1.NamespacePurge {
	return &v1.NamespacePurge{Spec: v1.NamespacePurgeSpec{NamespaceUID: uid}}
}

func newForcedPurge(uid types.UID) *v1.NamespacePurge {
	purge := newPurge(uid)
	purge.Spec.Force = true
	return purge
}

// TestForcedPurge forces the purge of a Namespace that has all kinds of content
// that can be held.
func TestForcedPurge(t *testing.T) {
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
	reject := func(what string, before map[string]int64, err error, code int32, text string) {
		t.Helper()
		wantContains(t, wantCode(t, err, code).Message, text)
		if diff := cmp.Diff(before, b.keys(t, "")); diff != "" {
			t.Errorf("%s has changed something (-before +after):\n%s", what, diff)
		}
	}
	before := b.keys(t, "")
	_, err = create(name, newForcedPurge(ns.UID), metav1.CreateOptions{})
	reject("a purge while Active", before, err, 409, "only a namespace that is being deleted can be purged; delete it first")

	deleteNamespace(t, b.Borough, name)
	before = b.keys(t, "")
	_, err = create("nowhere", newForcedPurge(ns.UID), metav1.CreateOptions{})
	reject("a purge of nothing", before, err, 404, `namespaces.tenancy.borough.io "nowhere" not found`)
	_, err = create(name, newForcedPurge("another"), metav1.CreateOptions{})
	reject("a purge of another incarnation", before, err, 409, "the UID of this one is "+string(ns.UID))
	_, err = create(name, newForcedPurge(""), metav1.CreateOptions{})
	reject("a purge without a UID", before, err, 422, "spec.namespaceUID: Required value")

	dryRun, err := create(name, newForcedPurge(ns.UID), metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(before, b.keys(t, "")); diff != "" {
		t.Errorf("a dry run has changed something (-before +after):\n%s", diff)
	}
	wantEqual(t, "status of the dry run", dryRun.Status, v1.NamespacePurgeStatus{Purged: []v1.PurgedResource{
		{Group: "tenancy.borough.io", Resource: "resourcequotas"},
		{Group: "tenancy.borough.io", Resource: "pods", Removed: 3, Held: 2, Objects: []v1.RemainingObject{
			{Name: "held", Finalizers: []string{"example.com/backup"}}, {Name: "running"},
		}},
		{Group: "tenancy.borough.io", Resource: "limitranges", Removed: 1, Held: 1, Objects: []v1.RemainingObject{
			{Name: "limits", Finalizers: []string{"example.com/billing"}},
		}},
		{Resource: "events"}, {Group: "coordination.k8s.io", Resource: "leases"},
		{Group: "rbac.authorization.k8s.io", Resource: "rolebindings"}, {Group: "rbac.authorization.k8s.io", Resource: "roles"},
	}})

	if err := b.StartController(t.Context()); err != nil {
		t.Fatal(err)
	}
	poll.Eventually(t, func() string { // the controller has done all that it can
		output := b.Kubectl(t, "get", ownNamespaces, name)
		if !strings.Contains(output, "2 pods (finalizer example.com/backup)") {
			return output
		}
		return ""
	})
	// With kubectl: a dry run, then a create of its output.
	manifest := fmt.Sprintf("{apiVersion: tenancy.borough.io/v1, kind: NamespacePurge, metadata: {namespace: %s}, spec: {namespaceUID: %s, force: true}}", name, ns.UID)
	shown, stderr, err := b.TryKubectl(t, manifest, "create", "--dry-run=server", "-o", "yaml", "-f", "-")
	if err != nil {
		t.Fatalf("kubectl create --dry-run=server: %v\n%s", err, stderr)
	}
	wantContains(t, stderr, "Warning: would remove 3 objects, 3 of them held by finalizers or a grace period: what these protect may be left behind")
	pattern := `kind: NamespacePurge metadata: name: \S+ namespace: \S+ spec: force: true namespaceUID: \S+ status: purged: ` +
		`- group: tenancy.borough.io held: 0 removed: 0 resource: resourcequotas ` +
		`- group: tenancy.borough.io held: 2 objects: - deletionGracePeriodSeconds: 0 deletionTimestamp: "20\S+" finalizers: - example.com/backup name: held ` +
		`- deletionGracePeriodSeconds: 30 deletionTimestamp: "20\S+" name: running removed: 2 resource: pods ` +
		`- group: tenancy.borough.io held: 1 objects: - finalizers: - example.com/billing name: limits removed: 1 resource: limitranges ` +
		`- held: 0 removed: 0 resource: events - group: coordination.k8s.io held: 0 removed: 0 resource: leases ` +
		`- group: rbac.authorization.k8s.io held: 0 removed: 0 resource: rolebindings - group: rbac.authorization.k8s.io held: 0 removed: 0 resource: roles$`
	if words := strings.Join(strings.Fields(shown), " "); !regexp.MustCompile(pattern).MatchString(words) {
		t.Errorf("kubectl create --dry-run=server: got\n%s", shown)
	}
	if len(b.keys(t, name)) != 3 {
		t.Errorf("after the dry runs, the keys are %v", b.keys(t, name))
	}
	stdout, stderr, err := b.TryKubectl(t, shown, "create", "-f", "-")
	if err != nil {
		t.Fatalf("kubectl create: %v\n%s", err, stderr)
	}
	wantEqual(t, "kubectl create", stdout, "namespacepurge.tenancy.borough.io/"+name+" created\n")
	wantContains(t, stderr, "Warning: removed 3 objects, 3 of them held")
	if left := b.keys(t, name); len(left) > 0 {
		t.Errorf("after the purge, the keys are %v", left)
	}
	poll.Eventually(t, gone(t, b.Borough, name))
	if key := "/registry/tenancy.borough.io/namespaces/" + name; b.keys(t, "")[key] != 0 {
		t.Errorf("%s is left", key)
	}
	if len(b.keys(t, bystander)) != 1 {
		t.Errorf("the keys of another Namespace are %v", b.keys(t, bystander))
	}

	// The log has it, but not the dry runs.
	wantEqual(t, "number of purges in the log", strings.Count(b.Server.Output(), `"Forced the purge of a namespace" namespace="`+name+`" uid="`+string(ns.UID)+`" user="`), 1)
	const prefix = "namespacepurges.tenancy.borough.io/"
	var got []map[string]string
	for _, event := range b.audited(t, name, 6) {
		if event.Verb != "create" || event.User.Username == "" {
			t.Errorf("got the audit event %+v", event)
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
	annotations := func(removed, held, dryRun string) map[string]string {
		return map[string]string{"namespace-uid": string(ns.UID), "force": "true", "removed": removed, "held": held, "finalized": "false", "dry-run": dryRun}
	}
	wantEqual(t, "annotations in the audit log", got, []map[string]string{
		annotations("resourcequotas=0,pods=3,limitranges=1,events=0,leases=0,rolebindings=0,roles=0", "resourcequotas=0,pods=2,limitranges=1,events=0,leases=0,rolebindings=0,roles=0", "true"),
		annotations("resourcequotas=0,pods=2,limitranges=1,events=0,leases=0,rolebindings=0,roles=0", "resourcequotas=0,pods=2,limitranges=1,events=0,leases=0,rolebindings=0,roles=0", "true"),
		annotations("resourcequotas=0,pods=2,limitranges=1,events=0,leases=0,rolebindings=0,roles=0", "resourcequotas=0,pods=2,limitranges=1,events=0,leases=0,rolebindings=0,roles=0", "false"),
	})
}

// TestForceIsARight shows that the controller, which may purge and delete all
// content, may not force.
func TestForceIsARight(t *testing.T) {
	t.Parallel()
	ns := newNamespace(t, alone)
	createPod(t, alone, ns, newPod("p", func(p *v1.Pod) { p.Finalizers = []string{"example.com/hold"} }))
	deleteNamespace(t, alone, ns)
	client := alone.Client(t).TenancyV1()
	namespace, err := client.Namespaces().Get(t.Context(), ns, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	controller := harness.NewHTTP(t, alone.Config(t, "controller"))
	post := func(query string, purge *v1.NamespacePurge) harness.Answer {
		return controller.Do(t, "POST", api+"/namespaces/"+ns+"/namespacepurges"+query, toJSON(t, purge), "Content-Type", asJSON)
	}
	for _, query := range []string{"", "?dryRun=All"} {
		wantStatus(t, post(query, newForcedPurge(namespace.UID)), 403, `cannot force resource "namespacepurges" in API group "tenancy.borough.io" in the namespace "`+ns+`"`)
	}
	wantAnswer(t, post("", newPurge(namespace.UID)), 201)
	if _, err := client.Pods(ns).Get(t.Context(), "p", metav1.GetOptions{}); err != nil {
		t.Error(err)
	}
}

// TestOrdinaryPurge purges a Namespace as the controller does.
func TestOrdinaryPurge(t *testing.T) {
	t.Parallel()
	b := alone
	client := b.Client(t).TenancyV1()
	name := newNamespace(t, b)
	createPod(t, b, name, newPod("free"))
	createPod(t, b, name, newPod("held", func(pod *v1.Pod) { pod.Finalizers = []string{"example.com/hold"} }))
	createLimitRange(t, b, name, newLimitRange("limits"))
	ns, err := client.Namespaces().Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	purge := func(uid types.UID) (v1.NamespacePurgeStatus, error) {
		purge, err := client.NamespacePurges(name).Create(t.Context(), newPurge(uid), metav1.CreateOptions{})
		if err != nil {
			return v1.NamespacePurgeStatus{}, err
		}
		for i := range purge.Status.Purged {
			for j := range purge.Status.Purged[i].Objects {
				purge.Status.Purged[i].Objects[j].DeletionTimestamp = nil
			}
		}
		return purge.Status, nil
	}
	_, err = purge(ns.UID)
	wantContains(t, wantCode(t, err, 409).Message, "only a namespace that is being deleted can be purged")
	deleteNamespace(t, b, name)
	_, err = purge("another")
	wantContains(t, wantCode(t, err, 409).Message, "for the namespace with UID another, but the UID of this one is "+string(ns.UID))
	if pods, err := client.Pods(name).List(t.Context(), metav1.ListOptions{}); err != nil || len(pods.Items) != 2 {
		t.Fatalf("%d Pods are left, error %v", len(pods.Items), err)
	}

	status, err := purge(ns.UID)
	if err != nil {
		t.Fatal(err)
	}
	zero := int64(0)
	wantEqual(t, "status, with a Pod that is held", status, v1.NamespacePurgeStatus{Purged: []v1.PurgedResource{
		{Group: "tenancy.borough.io", Resource: "resourcequotas"},
		{Group: "tenancy.borough.io", Resource: "pods", Removed: 1, Held: 1, Objects: []v1.RemainingObject{
			{Name: "held", Finalizers: []string{"example.com/hold"}, DeletionGracePeriodSeconds: &zero},
		}},
	}})
	patch := []byte(`{"metadata":{"finalizers":null}}`)
	if _, err := client.Pods(name).Patch(t.Context(), "held", types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	if status, err = purge(ns.UID); err != nil {
		t.Fatal(err)
	}
	wantEqual(t, "status, with no Pod left", status, v1.NamespacePurgeStatus{Purged: []v1.PurgedResource{
		{Group: "tenancy.borough.io", Resource: "resourcequotas"},
		{Group: "tenancy.borough.io", Resource: "pods"}, {Group: "tenancy.borough.io", Resource: "limitranges", Removed: 1},
		{Resource: "events"}, {Group: "coordination.k8s.io", Resource: "leases"},
		{Group: "rbac.authorization.k8s.io", Resource: "rolebindings"}, {Group: "rbac.authorization.k8s.io", Resource: "roles"},
	}})
	finalize(t, b, name)
	_, err = purge(ns.UID)
	wantContains(t, wantCode(t, err, 404).Message, `"`+name+`" not found`)
}

// TestNamespacePurgeRequests sends invalid requests.
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
		{"POST", in + "?fieldValidation=Strict", `{"spec":{"namespaceUID":"x","forced":true}}`, 400, `unknown field "spec.forced"`},
		{"POST", in, `{"kind":"Pod","apiVersion":"tenancy.borough.io/v1"}`, 400, "Pod in version \"v1\" cannot be handled as a NamespacePurge"},
		{"POST", in + "?dryRun=Some", `{"spec":{"namespaceUID":"x"}}`, 422, "dryRun"},
	} {
		answer := admin.Do(t, test.method, test.path, []byte(test.body), "Content-Type", asJSON)
		wantStatus(t, answer, test.code, test.text)
	}
}
