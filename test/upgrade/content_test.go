// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package upgrade

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/borough-io/borough/test/harness"
	"github.com/borough-io/borough/test/poll"
)

var fixtureDir = flag.String("fixture", "", "write a fixture to this directory, with the binaries in BOROUGH_BIN (hack/upgrade-fixture.sh)")

// plural are the resources of the kinds in testdata/content.yaml.
func plural(kind string) string { return strings.ToLower(kind) + "s" }

// TestFixture writes a fixture.
func TestFixture(t *testing.T) {
	if *fixtureDir == "" {
		t.Skip("hack/upgrade-fixture.sh runs this")
	}
	b := harness.New(t)
	if err := b.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	http := b.HTTP(t)
	createContent(t, http)

	o := objects{}
	if err := b.Controller.Stop(); err != nil {
		t.Fatal(err)
	}
	for _, path := range lists(t, b) {
		if o[path] = list(t, http, path); len(o[path]) == 0 {
			t.Errorf("there is no object at %s: add one to testdata/content.yaml", path)
		}
	}
	if err := b.Server.Stop(); err != nil {
		t.Fatal(err)
	}
	if t.Failed() {
		return
	}
	if err := fixture(*fixtureDir).write(b.Dir+"/etcd", o); err != nil {
		t.Fatal(err)
	}
}

// createContent creates testdata/content.yaml, and brings objects into states that only
// further requests lead to.
func createContent(t *testing.T, http harness.HTTP) {
	t.Helper()
	content, err := os.ReadFile("testdata/content.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range bytes.Split(content, []byte("\n---\n")) {
		var o struct {
			metav1.TypeMeta
			Metadata metav1.ObjectMeta
		}
		body, err := yaml.YAMLToJSONStrict(text)
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(body, &o); err != nil {
			t.Fatal(err)
		}
		path := "/apis/" + o.APIVersion
		if o.APIVersion == "v1" {
			path = "/api/v1"
		}
		if o.Metadata.Namespace != "" {
			path += "/namespaces/" + o.Metadata.Namespace
		}
		expect(t, http, "POST", path+"/"+plural(o.Kind), body, 201)
	}

	const pods = "/namespaces/team-a/pods"
	for _, group := range []string{"/api/v1", "/apis/tenancy.borough.io/v1"} {
		version := strings.TrimPrefix(strings.TrimPrefix(group, "/apis/"), "/api/")
		manager := strings.ReplaceAll(strings.Trim(group, "/"), "/", "-")
		expect(t, http, "PATCH", group+pods+"/web?fieldManager="+manager,
			[]byte(`{"apiVersion":"`+version+`","kind":"Pod","metadata":{"labels":{"`+manager+`":"applied"}}}`), 200,
			"Content-Type", "application/apply-patch+yaml")
	}
	for _, pod := range []string{"web", "done", "ending"} {
		expect(t, http, "POST", "/api/v1"+pods+"/"+pod+"/binding",
			[]byte(`{"apiVersion":"v1","kind":"Binding","metadata":{"name":"`+pod+`"},"target":{"kind":"Node","name":"node-1"}}`), 201)
	}
	status := func(pod, status string) {
		expect(t, http, "PATCH", "/api/v1"+pods+"/"+pod+"/status", []byte(`{"status":`+status+`}`), 200,
			"Content-Type", "application/merge-patch+json")
	}
	status("web", `{"phase":"Running","podIP":"10.0.0.1","podIPs":[{"ip":"10.0.0.1"}],"startTime":"2026-11-23T07:00:00Z",
		"conditions":[{"type":"Ready","status":"True","lastTransitionTime":"2026-11-23T07:00:01Z"}],
		"containerStatuses":[{"name":"web","image":"nginx:1.29","imageID":"sha256:1","ready":true,"restartCount":1,"state":{"running":{"startedAt":"2026-11-23T07:00:00Z"}}}]}`)
	status("done", `{"phase":"Succeeded"}`) // no quota counts it any more
	expect(t, http, "DELETE", "/api/v1"+pods+"/ending", nil, 200)

	for _, name := range []string{"held-by-finalizer", "held-by-node"} {
		path := "/apis/tenancy.borough.io/v1/namespaces/" + name
		expect(t, http, "DELETE", path, nil, 200)
		poll.Eventually(t, func() string {
			var ns struct {
				Status struct{ Termination json.RawMessage }
			}
			expect(t, http, "GET", path, nil, 200).JSON(t, &ns)
			if ns.Status.Termination == nil {
				return "the status of " + name + " does not say what it waits for"
			}
			return ""
		})
	}
}
