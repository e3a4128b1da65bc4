// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package differential

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/borough-io/borough/test/e2e/harness"
	"github.com/borough-io/borough/test/hostcluster/differential/sites"
)

// exchange is a request and the folded answers of both sites.
type exchange struct {
	step          step
	kube, borough *answer
	after         *exchange // the one before, if there is one
	// over says that the scenario ends here: the sites' objects differ from now
	// on.
	over bool
}

// difference is something that Borough answers otherwise on purpose, and why is
// in docs/reference/differences.md under the id.
type difference struct {
	id string
	// fold makes the answers alike where they differ by this. It is nil where
	// the sites are started so that they don't.
	fold func(*exchange)
	// illegible says that what is left after the fold is not for showing.
	illegible bool
	// met counts the answers that it made alike.
	met atomic.Int64
}

// known are all differences that are meant. The list is to be short: what can be
// mended is not on it.
var known = []*difference{
	// By how the sites are started.
	{id: "other-kinds"},
	{id: "garbage-collection"},

	{id: "finalizers-first", fold: foldFinalizersFirst},
	{id: "collections-go-on", fold: foldCollection},
	{id: "unchanged-by-resize", fold: foldUnchangedByResize},
	{id: "qos-class", fold: foldQOSClass},
	{id: "newer-fields", fold: foldNewerFields},
	{id: "diffs-in-messages", fold: foldMessages(func(message string) string {
		head, _, _ := strings.Cut(message, "\n")
		return head
	})},
	{id: "values-in-messages", fold: foldMessages(foldValues)},
	{id: "errors-of-clients", fold: foldClientErrors},
	{id: "newer-libraries", fold: foldNewerLibraries},
	{id: "repeated-violations", fold: foldRepeated},
	{id: "random-order", fold: foldOrder, illegible: true},
}

// TestDocumented finds each difference in the document for users.
func TestDocumented(t *testing.T) {
	data, err := os.ReadFile(filepath.Join(harness.Root, "docs", "reference", "differences.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, difference := range known {
		if !strings.Contains(string(data), `<a id="`+difference.id+`"></a>`) {
			t.Errorf("the document does not have %s", difference.id)
		}
	}
	for _, plugin := range sites.Absent {
		if !strings.Contains(string(data), "`"+plugin+"`") {
			t.Errorf("the document does not name the admission plugin %s", plugin)
		}
	}
	ids := regexp.MustCompile(`<a id="([^"]*)"></a>`).FindAllStringSubmatch(string(data), -1)
	if len(ids) != len(known) {
		t.Errorf("the document has %d differences, the test %d", len(ids), len(known))
	}
}

// TestKnown meets each difference, by the scenario of its name.
func TestKnown(t *testing.T) {
	scenarios := map[string]scenario{}
	for _, s := range readScenarios(t, "testdata/differences.yaml") {
		scenarios[s.Name] = s
	}
	for _, difference := range known {
		if difference.fold == nil {
			continue
		}
		s, found := scenarios["differences: "+difference.id]
		if !found {
			t.Errorf("there is no scenario that meets %s", difference.id)
			continue
		}
		before := difference.met.Load()
		check(t, []scenario{s})
		if difference.met.Load() == before {
			t.Errorf("%s is not met", difference.id)
		}
	}
}

// foldMessages returns a function that changes the messages of both answers, if
// they are failures.
func foldMessages(change func(string) string) func(*exchange) {
	return func(x *exchange) {
		for _, a := range []*answer{x.kube, x.borough} {
			if message, ok := a.field("message").(string); ok && a.field("kind") == "Status" {
				a.Body.(map[string]any)["message"] = change(message)
			}
			for _, cause := range a.causes() {
				cause := cause.(map[string]any)
				if message, ok := cause["message"].(string); ok {
					cause["message"] = change(message)
				}
			}
		}
	}
}

// foldValues cuts out the objects and lists that messages show: where Kubernetes
// shows them in its internal form, Borough does in the form of the API.
func foldValues(message string) string {
	var folded strings.Builder
	for {
		at := strings.Index(message, "value: ")
		if at < 0 {
			return folded.String() + message
		}
		at += len("value: ")
		folded.WriteString(message[:at])
		message = message[at:]
		if message == "" || message[0] != '{' && message[0] != '[' {
			continue
		}
		decoder := json.NewDecoder(strings.NewReader(message))
		var value json.RawMessage
		if decoder.Decode(&value) == nil {
			folded.WriteString("...")
			message = message[decoder.InputOffset():]
		}
	}
}

// foldFinalizersFirst takes a Namespace for gone that Kubernetes would remove by
// the next DELETE: its finalizers were gone before the first.
func foldFinalizersFirst(x *exchange) {
	if x.step.method() != "GET" || x.step.resource() != "namespaces" || x.kube.Code != 200 || x.borough.Code != 404 {
		return
	}
	spec, _ := x.kube.field("spec").(map[string]any)
	metadata := metadataOf(x.kube.Body)
	if metadata["deletionTimestamp"] != nil && metadata["finalizers"] == nil && spec["finalizers"] == nil {
		*x.kube, x.over = *x.borough, true
	}
}

// foldCollection takes for deleted what Kubernetes has left when the deletion of a
// collection failed for another object.
func foldCollection(x *exchange) {
	if x.after == nil || x.step.Do != "GET pods" || x.after.step.Do != "DELETE pods" || x.after.kube.Code < 400 {
		return
	}
	left, _ := x.kube.field("items").([]any)
	fewer, _ := x.borough.field("items").([]any)
	if len(fewer) < len(left) {
		x.kube.Body.(map[string]any)["items"], x.over = fewer, true
	}
}

// foldUnchangedByResize takes a resize as Borough does, of which Kubernetes says
// more: it judges, and gives defaults to, what the resize does not change.
func foldUnchangedByResize(x *exchange) {
	if !strings.Contains(x.step.Do, "/resize") {
		return
	}
	kube, borough := fmt.Sprint(x.kube.field("message")), fmt.Sprint(x.borough.field("message"))
	judged := x.kube.Code == 403 && strings.Contains(kube, " per ")
	given := x.kube.Code == 422 && strings.Contains(kube, "QOS Class may not change")
	_, said, _ := strings.Cut(borough, " is forbidden: ")
	if x.borough.Code == 200 && (judged || given) || x.borough.Code == 403 && judged && strings.Contains(kube, strings.Trim(said, "[]")) {
		*x.kube, x.over = *x.borough, true
	}
}

// foldQOSClass leaves out the class of a Pod that was created with one.
func foldQOSClass(x *exchange) {
	body, _ := x.step.Body.(map[string]any)
	sent, _ := body["status"].(map[string]any)
	if x.step.method() != "POST" || sent["qosClass"] == nil || x.kube.Code != 201 {
		return
	}
	for _, a := range []*answer{x.kube, x.borough} {
		if status, ok := a.field("status").(map[string]any); ok {
			delete(status, "qosClass")
		}
	}
	x.over = true
}

// foldClientErrors takes what is the client's fault for what Kubernetes says is
// the server's.
func foldClientErrors(x *exchange) {
	if x.kube.Code != 500 || x.borough.Code != 400 && x.borough.Code != 422 {
		return
	}
	message := fmt.Sprint(x.kube.field("message"))
	if strings.HasPrefix(message, "strconv.ParseUint: ") || strings.Contains(fmt.Sprint(x.borough.field("message")), message) {
		*x.kube = *x.borough
	}
}

// foldNewerLibraries takes out in what the libraries of the two differ: those of
// Kubernetes are older. They have other words for what is wrong with references
// to owners, with managed fields and with YAML, an apply that creates an object may
// say when it is deleted, and one list of a Pod's status is owned as a whole.
func foldNewerLibraries(x *exchange) {
	for _, a := range []*answer{x.kube, x.borough} {
		managed, _ := metadataOf(a.Body)["managedFields"].([]any)
		for _, entry := range managed {
			fields, _ := entry.(map[string]any)["fieldsV1"].(map[string]any)
			status, _ := fields["f:status"].(map[string]any)
			delete(status, "f:nodeAllocatableResourceClaimStatuses")
		}
	}
	if message, ok := x.kube.field("message").(string); ok && x.kube.Code == 400 {
		x.kube.Body.(map[string]any)["message"] = strings.Replace(message, "error decoding YAML: ", "error decoding patch: ", 1)
	}
	if x.step.As == "apply" && x.kube.Code == 201 {
		delete(metadataOf(x.kube.Body), "deletionGracePeriodSeconds")
		delete(metadataOf(x.kube.Body), "deletionTimestamp")
		x.over = true
	}
	older, newer := x.kube.causes(), x.borough.causes()
	reworded := func(cause any) bool {
		field := fmt.Sprint(cause.(map[string]any)["field"])
		return strings.HasPrefix(field, "metadata.ownerReferences") || strings.HasPrefix(field, "metadata.managedFields")
	}
	if !slices.ContainsFunc(older, reworded) || !slices.ContainsFunc(newer, reworded) {
		return
	}
	for _, a := range []*answer{x.kube, x.borough} {
		a.setCauses(slices.DeleteFunc(a.causes(), reworded))
		a.Body.(map[string]any)["message"] = "the causes"
	}
}

// foldNewerFields leaves out that kube-apiserver does not know the newest fields,
// which Borough drops.
func foldNewerFields(x *exchange) {
	if message, ok := x.kube.field("message").(string); ok && x.kube.Code == 400 && newerOnly(message) {
		*x.kube, x.over = *x.borough, true
		return
	}
	if known := slices.DeleteFunc(slices.Clone(x.kube.Warnings), newerOnly); len(known) < len(x.kube.Warnings) {
		x.kube.Warnings, x.over = known, true
		delete(metadataOf(x.kube.Body), "managedFields")
		delete(metadataOf(x.borough.Body), "managedFields")
	}
}

var unknownField = regexp.MustCompile(`unknown field \\?"[^"]*?([^."\\]+)\\?"`)

// newerOnly says whether a message tells of unknown fields that are but newer.
func newerOnly(message string) bool {
	unknown := unknownField.FindAllStringSubmatch(message, -1)
	return len(unknown) > 0 && !slices.ContainsFunc(unknown, func(match []string) bool {
		for field := range newerFields {
			if strings.HasSuffix(field, "."+match[1]) {
				return false
			}
		}
		return true
	})
}

// foldRepeated keeps one of causes that are the same.
func foldRepeated(x *exchange) {
	for _, a := range []*answer{x.kube, x.borough} {
		var distinct []any
		for _, cause := range a.causes() {
			if !slices.ContainsFunc(distinct, func(other any) bool { return reflect.DeepEqual(cause, other) }) {
				distinct = append(distinct, cause)
			}
		}
		a.setCauses(distinct)
	}
}

// foldOrder sorts violations, and the finalizers that the deletion of a Namespace
// leaves. Kubernetes goes through maps in their random order.
func foldOrder(x *exchange) {
	for _, a := range []*answer{x.kube, x.borough} {
		if finalizers, ok := metadataOf(a.Body)["finalizers"].([]any); ok && x.step.resource() == "namespaces" {
			slices.SortFunc(finalizers, func(a, b any) int { return strings.Compare(fmt.Sprint(a), fmt.Sprint(b)) })
		}
		causes := a.causes()
		slices.SortFunc(causes, func(a, b any) int { return strings.Compare(fmt.Sprint(a), fmt.Sprint(b)) })
		a.setCauses(causes)
		if message, ok := a.field("message").(string); ok && a.field("kind") == "Status" {
			parts := strings.Split(strings.NewReplacer("[", ", ", "]", ", ").Replace(message), ", ")
			slices.Sort(parts)
			a.Body.(map[string]any)["message"] = strings.Join(parts, ", ")
		}
	}
}
