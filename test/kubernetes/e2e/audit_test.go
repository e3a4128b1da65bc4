// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	v1 "github.com/borough-io/borough/pkg/apis/tenancy/v1"
	"github.com/borough-io/borough/test/harness"
	"github.com/borough-io/borough/test/poll"
)

// auditPolicy logs the requests and responses of a group of users, and the
// metadata of all other requests.
const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
omitManagedFields: true
rules:
- level: RequestResponse
  userGroups: [audited]
  resources: [{group: tenancy.borough.io}]
- level: Metadata
`

// auditEvent has the fields of an audit event that the tests read.
type auditEvent struct {
	AuditID    string
	Verb       string
	RequestURI string
	UserAgent  string
	User       authenticationv1.UserInfo
	ObjectRef  struct{ APIGroup, APIVersion, Resource, Namespace, Name string }

	Level, Stage                  string
	Annotations                   map[string]string
	ResponseStatus                metav1.Status
	RequestObject, ResponseObject json.RawMessage
}

// findAudit returns an empty string if the server's audit log has an event that
// matches, else the reason to wait.
func findAudit(t *testing.T, match func(auditEvent) bool) (reason string) {
	t.Helper()
	data, err := os.ReadFile(auditLog)
	if err != nil {
		return err.Error()
	}
	for line := range bytes.Lines(data) {
		var event auditEvent
		// The last line may be incomplete.
		if json.Unmarshal(line, &event) == nil && match(event) {
			return ""
		}
	}
	return "the audit log has no such event"
}

// annotatingPolicy adds the stage of the Namespace to the audit log.
const annotatingPolicy = `apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata:
  name: TEAM-audit
spec:
  matchConstraints:
    resourceRules:
    - {apiGroups: [tenancy.borough.io], apiVersions: [v1], operations: [CREATE], resources: [pods]}
  auditAnnotations:
  - key: stage
    valueExpression: namespaceObject.metadata.labels["stage"]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata:
  name: TEAM-audit
spec:
  policyName: TEAM-audit
  validationActions: [Audit]
  matchResources:
    namespaceSelector: {matchLabels: {team: TEAM}}
`

// TestAudit compares the audit log with requests through the cluster.
func TestAudit(t *testing.T) {
	t.Parallel()
	team := newName("team")
	namespace, _ := newTeamNamespaces(t, team)
	_, err := cluster.BoroughClient(t).TenancyV1().Namespaces().Patch(t.Context(), namespace, types.MergePatchType,
		[]byte(`{"metadata":{"labels":{"stage":"four"}}}`), metav1.PatchOptions{})
	if err != nil {
		t.Fatal(err)
	}
	cluster.Kubectl(t).RunWith(t, strings.ReplaceAll(annotatingPolicy, "TEAM", team), "apply", "-f", "-")
	user := newName("ivan")
	config, err := cluster.UserConfig(user, "audited", "system:masters")
	if err != nil {
		t.Fatal(err)
	}
	api := harness.NewHTTP(t, config)
	path := "/apis/tenancy.borough.io/v1/namespaces/" + namespace + "/"
	// send sends a manifest and returns the response and its audit event.
	send := func(api harness.HTTP, resource, manifest string) (answer harness.Answer, logged auditEvent) {
		t.Helper()
		answer = api.Do(t, http.MethodPost, path+resource, []byte(manifest), "Content-Type", "application/yaml")
		poll.Eventually(t, func() string {
			return findAudit(t, func(event auditEvent) bool {
				logged = event
				return event.AuditID == answer.Header.Get("Audit-Id")
			})
		})
		return answer, logged
	}

	pod := strings.Replace(fmt.Sprintf(podManifest, "example.com/web:1"), "name: web", "generateName: web-", 1)
	var answer harness.Answer
	var logged auditEvent
	poll.Eventually(t, func() string { // until the server applies the policy
		answer, logged = send(api, "pods", pod)
		if got := logged.Annotations[team+"-audit/stage"]; got != "four" {
			return fmt.Sprintf("the policy's annotation is %q in %v", got, logged.Annotations)
		}
		return ""
	})
	var created, requested, responded v1.Pod
	answer.JSON(t, &created)
	for raw, object := range map[*json.RawMessage]*v1.Pod{&logged.RequestObject: &requested, &logged.ResponseObject: &responded} {
		if err := json.Unmarshal(*raw, object); err != nil {
			t.Fatalf("decode an object in the log: %v\n%s", err, *raw)
		}
	}
	if logged.Level != "RequestResponse" || logged.Stage != "ResponseComplete" || logged.Verb != "create" || logged.User.Username != user || logged.ResponseStatus.Code != http.StatusCreated {
		t.Errorf("create a Pod: the log has %+v", logged)
	}
	if ref := logged.ObjectRef; ref.APIGroup != v1.GroupName || ref.APIVersion != "v1" || ref.Resource != "pods" || ref.Namespace != namespace {
		t.Errorf("create a Pod: the log refers to %+v", ref)
	}
	if logged.Annotations["authorization.k8s.io/decision"] != "allow" {
		t.Errorf("create a Pod: the log's annotations are %v", logged.Annotations)
	}
	if requested.GenerateName != "web-" || requested.UID != "" || responded.UID != created.UID || responded.ManagedFields != nil {
		t.Errorf("create a Pod: the log has the request %s and the response %s", logged.RequestObject, logged.ResponseObject)
	}

	answer, logged = send(api, "limitranges", fmt.Sprintf(limitRangeManifest, "-1"))
	if answer.Code != http.StatusUnprocessableEntity || logged.ResponseStatus.Code != http.StatusUnprocessableEntity || len(logged.RequestObject) == 0 {
		t.Errorf("create an invalid LimitRange: answer %v, the log has %+v", answer, logged)
	}
	answer, logged = send(harness.NewHTTP(t, cluster.AdminConfig()), "pods", pod)
	if answer.Code != http.StatusCreated || logged.Level != "Metadata" || len(logged.RequestObject)+len(logged.ResponseObject) > 0 {
		t.Errorf("a user whose objects are not logged: status %d, the log has %+v", answer.Code, logged)
	}
}
