// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/yaml"
)

// TestRightsOfManifests compares the rights that are checked with the rights in
// the manifests.
func TestRightsOfManifests(t *testing.T) {
	base := givenBy(t, "base/apiserver/rbac.yaml")
	selfSigned := givenBy(t, "components/self-signed/rbac.yaml")
	projects := givenBy(t, "components/projects/rbac.yaml")
	for _, tc := range []struct {
		args  []string
		given sets.Set[string]
	}{
		{nil, base},
		{[]string{"--serving-cert-secret=borough-system/borough-apiserver-tls"}, base.Union(selfSigned)},
		{[]string{"--serve-projects"}, base.Union(projects)},
		{[]string{"--serve-projects=true", "--v=2"}, base.Union(projects)},
		{[]string{"--serve-projects=false"}, base},
	} {
		checked := checkedWith(tc.args...)
		if diff := cmp.Diff(sets.List(tc.given), sets.List(checked)); diff != "" {
			t.Errorf("with %v, the checked rights differ from the manifests (-given +checked):\n%s", tc.args, diff)
		}
	}
}

// TestControllerRightsOfManifests does the same for the controller.
func TestControllerRightsOfManifests(t *testing.T) {
	checked := sets.New[string]()
	for _, r := range (&examination{Options: Options{Namespace: "borough-system"}}).controllerRights() {
		checked = checked.Union(each(r))
	}
	if diff := cmp.Diff(sets.List(givenBy(t, "base/controller-manager/rbac.yaml")), sets.List(checked)); diff != "" {
		t.Errorf("the checked rights differ from the manifest (-given +checked):\n%s", diff)
	}
}

// givenBy returns the rights in the roles of a manifest.
func givenBy(t *testing.T, manifest string) sets.Set[string] {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("../../artifacts/deploy", manifest))
	if err != nil {
		t.Fatal(err)
	}
	given := sets.New[string]()
	for decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(data), 4096); ; {
		var role rbacv1.Role // or a ClusterRole
		err := decoder.Decode(&role)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if role.Name == "borough-project-viewer" {
			continue // for the users
		}
		for _, rule := range role.Rules {
			r := right{verbs: rule.Verbs, group: rule.APIGroups[0], resources: rule.Resources, namespace: role.Namespace}
			if len(rule.ResourceNames) > 0 {
				r.name = rule.ResourceNames[0]
			}
			if len(rule.APIGroups) > 1 || len(rule.ResourceNames) > 1 {
				t.Fatalf("%s: this test cannot compare a rule with several groups or names: %+v", manifest, rule)
			}
			given = given.Union(each(r))
		}
	}
	if given.Len() == 0 {
		t.Fatalf("%s has no rights", manifest)
	}
	return given
}

func checkedWith(args ...string) sets.Set[string] {
	checked := sets.New[string]()
	for _, r := range serverRights(&deployment{container: corev1.Container{Args: args}}) {
		checked = checked.Union(each(r))
	}
	return checked
}

func each(r right) sets.Set[string] {
	rights := sets.New[string]()
	for _, resource := range r.resources {
		for _, verb := range r.verbs {
			rights.Insert(r.describe(map[string][]string{verb: {resource}})...)
		}
	}
	return rights
}

func TestRightsFollowFlags(t *testing.T) {
	for _, tc := range []struct{ right, flag string }{
		{"list mutatingadmissionpolicies of admissionregistration.k8s.io", "--disable-admission-plugins=LimitRanger,MutatingAdmissionPolicy"},
		{"watch validatingadmissionpolicybindings of admissionregistration.k8s.io", "--disable-admission-plugins=ValidatingAdmissionPolicy"},
		{"patch flowschemas/status of flowcontrol.apiserver.k8s.io", "--enable-priority-and-fairness=false"},
	} {
		if !checkedWith().Has(tc.right) || checkedWith(tc.flag).Has(tc.right) {
			t.Errorf("%s: want it checked only without %s", tc.right, tc.flag)
		}
	}
}

func TestDescribe(t *testing.T) {
	r := right{verbs: []string{"get", "list", "watch"}, group: "g", resources: []string{"a", "b"}, namespace: "ns"}
	for _, tc := range []struct {
		lacking map[string][]string
		want    []string
	}{
		{nil, nil},
		{map[string][]string{"get": {"a", "b"}, "list": {"a", "b"}, "watch": {"a", "b"}}, []string{"get/list/watch a, b of g in ns"}},
		{map[string][]string{"get": {"a"}, "list": {"b"}, "watch": {"a"}}, []string{"get/watch a of g in ns", "list b of g in ns"}},
		{map[string][]string{"watch": {"b"}}, []string{"watch b of g in ns"}},
	} {
		if diff := cmp.Diff(tc.want, r.describe(tc.lacking)); diff != "" {
			t.Errorf("%v (-want +got):\n%s", tc.lacking, diff)
		}
	}
}
