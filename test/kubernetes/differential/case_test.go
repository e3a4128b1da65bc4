// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package differential

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	eventsv1 "k8s.io/api/events/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/yaml"
)

// scenario is a sequence of requests in a separate Namespace. It is written as
// YAML, as in testdata.
type scenario struct {
	Name  string `json:"name"`
	Steps []step `json:"steps"`
}

// step is a request.
type step struct {
	// Do is the method and the path. A path that starts with a namespaced resource,
	// such as pods, is relative to the scenario's Namespace, which is created first. A
	// scenario whose first path starts with namespaces creates its Namespace itself. A
	// path that starts with a slash is absolute.
	Do string `json:"do"`
	// User is the user that makes the request. It is an administrator by default.
	User *identity `json:"user,omitempty"`
	// Accept is the format of the response, by default JSON.
	Accept string `json:"accept,omitempty"`
	// As is the type of a PATCH: json, merge, strategic or apply.
	As string `json:"as,omitempty"`
	// Body is an object. If it has no kind or apiVersion, the kind and v1 are
	// added.
	//
	// In the body and in the path, $ns is replaced by the name of the Namespace,
	// and $uid and $resourceVersion by those of the last object in a response.
	Body any `json:"body,omitempty"`
	// Until is a status code. The request is repeated until it gets this status,
	// because the caches of Kubernetes' admission lag behind.
	Until int `json:"until,omitempty"`
	// Settle repeats the request until the responses are equal, because controllers
	// write what it reads. After a settled request for ResourceQuotas, Kubernetes'
	// admission uses what it has read.
	Settle bool `json:"settle,omitempty"`
	// Has is a field that settled responses have. Before the controllers of both have
	// written anything, the responses are equal, too.
	Has string `json:"has,omitempty"`
}

// identity is a user, whom the admin impersonates.
type identity struct {
	Name   string              `json:"name"`
	UID    string              `json:"uid,omitempty"`
	Groups []string            `json:"groups,omitempty"`
	Extra  map[string][]string `json:"extra,omitempty"`
}

// patchTypes are the content types of a PATCH.
var patchTypes = map[string]string{
	"json":      "application/json-patch+json",
	"merge":     "application/merge-patch+json",
	"strategic": "application/strategic-merge-patch+json",
	"apply":     "application/apply-patch+yaml",
}

func (s step) method() string { method, _, _ := strings.Cut(s.Do, " "); return method }

// path returns the path of the request. Kinds without a group are at the prefix.
func (s step) path(prefix string) string {
	_, path, _ := strings.Cut(s.Do, " ")
	if strings.HasPrefix(path, "/") {
		return path
	}
	kind := kinds[s.resource()]
	if kind.group != "" {
		prefix = "/apis/" + kind.group + "/v1"
	}
	if !kind.cluster {
		path = "namespaces/$ns/" + path
	}
	return prefix + "/" + path
}

func (s step) contentType() string {
	if s.method() == "PATCH" {
		return patchTypes[s.As]
	}
	return "application/json"
}

// resource returns the resource of a path that is not absolute.
func (s step) resource() string {
	_, path, _ := strings.Cut(s.Do, " ")
	resource, _, _ := strings.Cut(path, "?")
	resource, _, _ = strings.Cut(resource, "/")
	return resource
}

// ownsNamespace reports whether the scenario creates its Namespace itself.
func (s scenario) ownsNamespace() bool {
	return len(s.Steps) > 0 && s.Steps[0].resource() == "namespaces"
}

// hasOwnKinds reports whether the scenario has a request for a kind of Borough's own
// group.
func (s scenario) hasOwnKinds() bool {
	return slices.ContainsFunc(s.Steps, func(step step) bool {
		kind, found := kinds[step.resource()]
		return found && kind.group == ""
	})
}

// kind is the kind of a resource. Without a group it is one of ours, in core at
// Kubernetes.
type kind struct {
	group, name string
	cluster     bool // not in Namespaces
}

var kinds = map[string]kind{
	"pods":           {"", "Pod", false},
	"limitranges":    {"", "LimitRange", false},
	"resourcequotas": {"", "ResourceQuota", false},
	"namespaces":     {"", "Namespace", true},

	"roles":               {rbacv1.GroupName, "Role", false},
	"rolebindings":        {rbacv1.GroupName, "RoleBinding", false},
	"clusterroles":        {rbacv1.GroupName, "ClusterRole", true},
	"clusterrolebindings": {rbacv1.GroupName, "ClusterRoleBinding", true},

	"leases": {coordinationv1.GroupName, "Lease", false},
	"events": {eventsv1.GroupName, "Event", false},

	"subjectaccessreviews":      {authorizationv1.GroupName, "SubjectAccessReview", true},
	"localsubjectaccessreviews": {authorizationv1.GroupName, "LocalSubjectAccessReview", false},
	"selfsubjectaccessreviews":  {authorizationv1.GroupName, "SelfSubjectAccessReview", true},
	"selfsubjectrulesreviews":   {authorizationv1.GroupName, "SelfSubjectRulesReview", true},
	"selfsubjectreviews":        {authenticationv1.GroupName, "SelfSubjectReview", true},
	"tokenreviews":              {authenticationv1.GroupName, "TokenReview", true},
}

// object returns the body before variables are replaced.
func (s step) object() any {
	body, ok := s.Body.(map[string]any)
	if !ok || s.method() == "DELETE" || s.method() == "PATCH" && s.As != "apply" {
		return s.Body
	}
	if body["apiVersion"] != nil || body["kind"] != nil {
		return body
	}
	kind := kinds[s.resource()]
	if strings.Contains(s.Do, "/binding") {
		kind.name = "Binding"
	}
	typed := map[string]any{"apiVersion": strings.TrimPrefix(kind.group+"/v1", "/"), "kind": kind.name}
	for key, value := range body {
		typed[key] = value
	}
	return typed
}

// String returns the scenario as YAML, or as JSON if its keys are too long for
// YAML.
func (s scenario) String() string {
	data, err := yaml.Marshal([]scenario{s})
	if err != nil {
		if data, err = json.Marshal(s); err != nil {
			return err.Error()
		}
	}
	return string(data)
}

// readScenarios reads the scenarios in the files that match the pattern.
func readScenarios(t *testing.T, pattern string) (all []scenario) {
	t.Helper()
	files, err := filepath.Glob(pattern)
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var scenarios []scenario
		if err := yaml.UnmarshalStrict(data, &scenarios); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		for _, s := range scenarios {
			s.Name = strings.TrimSuffix(filepath.Base(file), ".yaml") + ": " + s.Name
			all = append(all, s)
		}
	}
	return all
}
