// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package source

import (
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation"
)

// TestNames compares names and source UIDs with those of all versions before: if they
// changed, an upgrade would create all Pods again in other Namespaces.
func TestNames(t *testing.T) {
	for _, tc := range []struct {
		identity       Identity
		namespace, uid string
	}{
		{Identity{File, "/etc/borough/pods", "node-1"}, "file-ee1704e8c0155c1fe590bfec865a3345", "92619d20-48cc-8e89-b31b-20d504e874d5"},
		{Identity{HTTP, "https://pods.example.com/n?x=y", "node-1"}, "http-728db4cd3df27c8a86ff71ff4f85a3a6", "f39de488-5ade-811d-b709-45635cbcb11e"},
		{Identity{HTTP, "https://pods.example.com/n?x=y", "node-2"}, "http-9c26613c7381555561ea3e7d30ccf51e", "aec8ea98-6418-8545-baf5-23689211f347"},
	} {
		if got := tc.identity.Namespace(); got != tc.namespace {
			t.Errorf("%v: the Namespace is %s, not %s", tc.identity, got, tc.namespace)
		}
		if reasons := validation.IsDNS1123Label(tc.identity.Namespace()); len(reasons) > 0 {
			t.Errorf("%v: %v", tc.identity, reasons)
		}
		if got := string(tc.identity.UID("web")); got != tc.uid {
			t.Errorf("%v: the source UID is %s, not %s", tc.identity, got, tc.uid)
		}
		if reasons := validation.IsValidLabelValue(tc.identity.ID()); len(reasons) > 0 {
			t.Errorf("%v: %v", tc.identity, reasons)
		}
	}
}

// TestNamesDiffer checks that what is next to each other in a name cannot be exchanged.
func TestNamesDiffer(t *testing.T) {
	seen := map[string]Identity{}
	for _, i := range []Identity{
		{File, "/a", "n"}, {HTTP, "/a", "n"}, {File, "/an", ""}, {File, "", "n/a"}, {File, "/a1:n", "n"}, {File, "/a", "m"},
	} {
		for _, name := range []string{i.Namespace(), string(i.UID("p"))} {
			if other, exists := seen[name]; exists {
				t.Errorf("%v and %v have the same name %s", i, other, name)
			}
			seen[name] = i
		}
	}
	uid := string(Identity{}.UID("p"))
	if !regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`).MatchString(uid) {
		t.Errorf("%s is no UUID of version 8", uid)
	}
}

func TestParse(t *testing.T) {
	wd, err := filepath.Abs(".")
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		from, node string
		want       Identity
		text       string
		err        string
	}{
		{from: "/etc/pods/", node: "n", want: Identity{File, "/etc/pods", "n"}, text: "/etc/pods"},
		{from: "pods.yaml", node: "n", want: Identity{File, wd + "/pods.yaml", "n"}, text: wd + "/pods.yaml"},
		{from: "https://h/p?token=x", node: "n", want: Identity{HTTP, "https://h/p?token=x", "n"}, text: "https://h/p?..."},
		{from: "http://h/p", node: "n", err: "must begin with https://"},
		{from: "ftp://h/p", node: "n", err: "must begin with https://"},
		{from: "https://", node: "n", err: "and a host"},
		{from: "https://u:secret@h/", node: "n", err: "must not have a user or a password"},
		{from: "https://h/#f", node: "n", err: "must not have a fragment"},
		{from: "https://h:secret/", node: "n", err: "is invalid"},
		{from: "", node: "n", err: "must not be empty"},
	} {
		got, err := Parse(tc.from, tc.node)
		switch {
		case tc.err != "" && (err == nil || !strings.Contains(err.Error(), tc.err) || strings.Contains(err.Error(), "secret")):
			t.Errorf("%s: got the error %v, want %q", tc.from, err, tc.err)
		case tc.err == "" && (err != nil || got != tc.want || got.String() != tc.text):
			t.Errorf("%s: got %#v, %v", tc.from, got, err)
		}
	}
}

func TestPod(t *testing.T) {
	identity := Identity{File, "/pods", "node-1"}
	pod := &unstructured.Unstructured{Object: map[string]any{
		"metadata": map[string]any{
			"name":        "web",
			"labels":      map[string]any{"app": "web", Label: "other"},
			"annotations": map[string]any{"a": "b", SeenAnnotation: "x", HashAnnotation: "x"},
		},
		"spec": map[string]any{"nodeName": "other"},
	}}
	before := pod.DeepCopy()
	got, err := identity.Pod("web.yaml", pod)
	if err != nil {
		t.Fatal(err)
	}
	annotations := got.GetAnnotations()
	hash := annotations[HashAnnotation]
	node, _, _ := unstructured.NestedString(got.Object, "spec", "nodeName")
	if got.GetName() != "web-node-1" || node != "node-1" || got.GetLabels()[Label] != identity.ID() || got.GetLabels()["app"] != "web" ||
		len(annotations) != 5 || annotations["a"] != "b" || annotations[KindAnnotation] != "file" || annotations[FileAnnotation] != "web.yaml" ||
		annotations[UIDAnnotation] != string(identity.UID("web")) || len(hash) != 32 {
		t.Errorf("got %v", got.Object)
	}
	if after, err := identity.Pod("web.yaml", pod); err != nil || after.GetAnnotations()[HashAnnotation] != hash {
		t.Errorf("the hash is not the same for the same Pod: %v, %v", after, err)
	}
	if before.GetName() != pod.GetName() || len(before.GetLabels()) != len(pod.GetLabels()) {
		t.Errorf("the Pod of the file has changed: %v", pod.Object)
	}
	pod.SetLabels(map[string]string{"app": "other"})
	if after, err := identity.Pod("web.yaml", pod); err != nil || after.GetAnnotations()[HashAnnotation] == hash {
		t.Errorf("the hash is the same for another Pod: %v, %v", after, err)
	}

	for _, name := range []string{strings.Repeat("a", 250), "A", "-a"} {
		pod.SetName(name)
		if _, err := identity.Pod("web.yaml", pod); err == nil || !strings.Contains(err.Error(), "NAME-NODE") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
