// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bufio"
	"fmt"
	"net/http"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/borough-io/borough/test/harness"
)

// newViewer returns a Namespace, a user who may view it, and the user's kubectl. There
// is another Namespace, which the user may not get.
func newViewer(t *testing.T) (ns, other, user string, kubectl *harness.Kubectl) {
	t.Helper()
	ns, other = newNamespace(t, borough), newNamespace(t, borough)
	user = ns + "-viewer"
	grant(t, borough, ns, "view", user)
	return ns, other, user, kubectlFor(t, issue(t, borough, "--user="+user))
}

// TestKubectlLists lists Namespaces as a user who may get one of them.
func TestKubectlLists(t *testing.T) {
	t.Parallel()
	ns, other, _, kubectl := newViewer(t)
	wantEqual(t, "names", kubectl.Run(t, "get", "ns", "-o", "name"), "namespace/"+ns+"\n")
	// As kubens does.
	wantEqual(t, "names", kubectl.Run(t, "get", "namespaces", `-o=jsonpath={range .items[*].metadata.name}{@}{"\n"}{end}`), ns+"\n")
	for _, args := range [][]string{{"get", "ns"}, {"describe", "ns"}} {
		output := kubectl.Run(t, args...)
		if wantContains(t, output, ns); strings.Contains(output, other) {
			t.Errorf("%v shows another Namespace: %s", args, output)
		}
	}
}

// TestKubectlWatches watches the Namespaces as a user, while one comes and goes.
func TestKubectlWatches(t *testing.T) {
	t.Parallel()
	ns, other, user, kubectl := newViewer(t)
	lines := kubectl.Watch(t, "get", "ns", "-w", "--output-watch-events", "--no-headers")
	want := func(event, name string) {
		t.Helper()
		for line := range lines {
			fields := strings.Fields(line)
			if len(fields) < 2 || fields[1] != ns && fields[1] != name {
				t.Fatalf("got %q", line)
			}
			if fields[0] == event && fields[1] == name {
				return
			}
		}
		t.Fatalf("kubectl has ended without %s of %s", event, name)
	}
	want("ADDED", ns)
	grant(t, borough, other, "view", user)
	want("ADDED", other)
	borough.Kubectl(t, "label", "ns", other, "a=b")
	want("MODIFIED", other)
	borough.Kubectl(t, "delete", "rolebinding", "-n", other, user)
	want("DELETED", other)
	borough.Kubectl(t, "delete", "ns", ns)
	want("DELETED", ns)
}

// TestKubectlWaits waits for a label and then for the deletion of a Namespace, as a user
// who may get this one.
func TestKubectlWaits(t *testing.T) {
	t.Parallel()
	ns, _, _, kubectl := newViewer(t)
	one := kubectl.Watch(t, "get", "ns", ns, "-w", "--output-watch-events", "--no-headers")
	if line := <-one; !strings.HasPrefix(line, "ADDED") {
		t.Fatalf("got %q", line)
	}
	labelled := kubectl.Watch(t, "wait", "--for=jsonpath={.metadata.labels.a}=b", "ns/"+ns, "--timeout=60s")
	deleted := kubectl.Watch(t, "wait", "--for=delete", "ns/"+ns, "--timeout=60s")
	borough.Kubectl(t, "label", "ns", ns, "a=b")
	if line := <-labelled; !strings.HasSuffix(line, "condition met") {
		t.Errorf("kubectl wait for a label: got %q", line)
	}
	borough.Kubectl(t, "delete", "ns", ns)
	if line := <-deleted; !strings.HasSuffix(line, "condition met") {
		t.Errorf("kubectl wait for the deletion: got %q", line)
	}
	var events []string
	for line := range one {
		events = append(events, strings.Fields(line)[0])
		if events[len(events)-1] == "DELETED" {
			break
		}
	}
	if len(events) < 2 || events[0] != "MODIFIED" || events[len(events)-1] != "DELETED" {
		t.Errorf("kubectl get -w: got %v", events)
	}
}

// TestRequestsOfTools sends what k9s and Headlamp send for the Namespaces, as a user who
// may get one of them.
func TestRequestsOfTools(t *testing.T) {
	t.Parallel()
	ns, other, user, _ := newViewer(t)
	client := as(t, borough, user)
	const namespaces = api + "/namespaces"
	review := []byte(`{"apiVersion":"authorization.k8s.io/v1","kind":"SelfSubjectAccessReview","spec":{"resourceAttributes":{"group":"tenancy.borough.io","resource":"namespaces","verb":"list"}}}`)
	wantAnswer(t, client.Do(t, http.MethodPost, "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", review, "Content-Type", asJSON), http.StatusCreated)
	for _, request := range []struct{ query, accept string }{
		{"", asJSON},
		{"?limit=500", asJSON},
		{"?resourceVersion=0", asProto},
		{"?limit=1", "application/json;as=Table;v=v1;g=meta.k8s.io"},
		{"?resourceVersion=0", "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"},
	} {
		answer := wantAnswer(t, client.Do(t, http.MethodGet, namespaces+request.query, nil, "Accept", request.accept), http.StatusOK)
		wantContains(t, string(answer.Body), ns)
		if strings.Contains(string(answer.Body), other) {
			t.Errorf("%s as %s shows another Namespace: %s", request.query, request.accept, answer.Body)
		}
	}
	var list metav1.PartialObjectMetadataList
	client.Do(t, http.MethodGet, namespaces+"?limit=500", nil).JSON(t, &list)
	watch := client.Open(t, http.MethodGet, fmt.Sprintf("%s?watch=1&resourceVersion=%s", namespaces, list.ResourceVersion), nil)
	defer watch.Body.Close()
	if watch.StatusCode != http.StatusOK {
		t.Fatalf("got code %d", watch.StatusCode)
	}
	borough.Kubectl(t, "label", "ns", ns, "a=b")
	line, err := bufio.NewReader(watch.Body).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	wantContains(t, line, `"MODIFIED"`, ns)
}
