// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package deployment

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/borough-io/borough/test/kubernetes/testcluster"
)

const (
	serverUser     = "system:serviceaccount:" + testcluster.SystemNamespace + ":" + serverName
	controllerUser = "system:serviceaccount:" + testcluster.SystemNamespace + ":" + controllerName
)

// auditPolicy logs the requests of the service accounts and users of the test
// to the cluster.
const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- level: Metadata
  users: [%s]
- level: None
`

// audit reads the audit log of the cluster.
type audit struct {
	policy, path string
	read         int64 // offset in the log
	events       []event
}

// event is a request on which the cluster has decided.
type event struct {
	Verb       string
	RequestURI string
	User       struct{ Username string }
	ObjectRef  *struct{ APIGroup, Resource, Subresource, Namespace, Name string }
	// Annotations include the decision of the authorizer.
	Annotations map[string]string
}

func newAudit(t *testing.T) *audit {
	t.Helper()
	dir := t.TempDir()
	a := &audit{policy: filepath.Join(dir, "policy.yaml"), path: filepath.Join(dir, "log")}
	users := strings.Join([]string{serverUser, controllerUser, viewer, editor}, ", ")
	if err := os.WriteFile(a.policy, fmt.Appendf(nil, auditPolicy, users), 0o600); err != nil {
		t.Fatal(err)
	}
	return a
}

func (a *audit) flags() []string {
	return []string{"--audit-policy-file=" + a.policy, "--audit-log-path=" + a.path}
}

// update reads the new lines of the log.
func (a *audit) update(t *testing.T) {
	t.Helper()
	log, err := os.Open(a.path)
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	if _, err := log.Seek(a.read, io.SeekStart); err != nil {
		t.Fatal(err)
	}
	for lines := bufio.NewReader(log); ; {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			return // the last line may be incomplete
		}
		a.read += int64(len(line))
		var e event
		if err := json.Unmarshal(line, &e); err != nil {
			t.Fatalf("the audit log: %v in %s", err, line)
		}
		a.events = append(a.events, e)
	}
}

// mark returns the current number of events.
func (a *audit) mark(t *testing.T) int {
	t.Helper()
	a.update(t)
	return len(a.events)
}

// lacks returns those of the grants that no request since the mark needed,
// among the requests that were allowed or those that were forbidden.
func (a *audit) lacks(t *testing.T, mark int, grants []grant, forbidden bool) []grant {
	t.Helper()
	a.update(t)
	needed := map[grant]bool{}
	for _, e := range a.events[mark:] {
		if e.forbidden() != forbidden {
			continue
		}
		for _, g := range grants {
			needed[g] = needed[g] || e.needs(g)
		}
	}
	var lacking []grant
	for _, g := range grants {
		if !needed[g] {
			lacking = append(lacking, g)
		}
	}
	return lacking
}

func (e *event) forbidden() bool {
	return e.Annotations["authorization.k8s.io/decision"] == "forbid"
}

// needs reports whether the request requires the grant.
func (e *event) needs(g grant) bool {
	if e.ObjectRef == nil || e.User.Username != g.user || e.Verb != g.verb || e.ObjectRef.APIGroup != g.group {
		return false
	}
	resource := e.ObjectRef.Resource
	if e.ObjectRef.Subresource != "" {
		resource += "/" + e.ObjectRef.Subresource
	}
	return resource == g.resource && (g.name == "" || e.ObjectRef.Name == g.name)
}

func (e *event) String() string {
	return fmt.Sprintf("%s: %s %s", e.User.Username, e.Verb, e.RequestURI)
}
