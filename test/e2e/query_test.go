// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"net/url"
	"strings"
	"testing"

	"github.com/borough-io/borough/test/harness"
	"github.com/borough-io/borough/test/poll"
)

// TestMalformedQuery checks that a query that cannot be parsed completely is
// rejected: the part that is lost could be the selector of a DELETE.
func TestMalformedQuery(t *testing.T) {
	t.Parallel()
	ns := newNamespace(t, borough)
	createPod(t, borough, ns, newPod("there"))
	http := borough.HTTP(t)
	pods := api + "/namespaces/" + ns + "/pods"
	for _, test := range []struct{ name, query, message string }{
		{"escape", "labelSelector=a%zz", `invalid URL escape "%zz"`},
		{"escape in a name", "label%Selector=a", `invalid URL escape "%Se"`},
		{"semicolon", "labelSelector=a;dryRun=All", "invalid semicolon separator in query"},
		{"number of parameters", strings.Repeat("a=b&", 20_000) + "labelSelector=a", "number of URL query parameters exceeded limit"},
	} {
		t.Run(test.name, func(t *testing.T) {
			for _, method := range []string{"DELETE", "GET"} {
				wantStatus(t, http.Do(t, method, pods+"?"+test.query, nil), 400, "the query of the request cannot be parsed: ")
				wantStatus(t, http.Do(t, method, pods+"?"+test.query, nil), 400, test.message)
			}
			wantAnswer(t, http.Do(t, "GET", pods+"/there", nil), 200)
		})
	}
	// Empty parameters are harmless.
	wantAnswer(t, http.Do(t, "DELETE", pods+"?&&labelSelector=a&", nil), 200)
	wantAnswer(t, http.Do(t, "GET", pods+"/there", nil), 200)
}

// TestInvalidSelector checks that a selector that takes long to parse, or to compare with
// objects, is rejected before the client is authenticated.
func TestInvalidSelector(t *testing.T) {
	t.Parallel()
	for want, query := range map[string]string{
		"more than 10 values of a label selector are invalid: a valid label must": "labelSelector=" + url.QueryEscape("k in ("+strings.Repeat("@,", 500)+")"),
		"a label selector has more than 1000 requirements and values":             "labelSelector=" + strings.Repeat("!k,", 1000),
		"a field selector has more than 1000 requirements and values":             "fieldSelector=" + strings.Repeat("metadata.name!=x,", 1000),
	} {
		for _, path := range []string{api + "/namespaces", "/api/v1/pods", "/version"} {
			for _, method := range []string{"GET", "DELETE"} {
				wantStatus(t, anonymous(t, borough).Do(t, method, path+"?"+query, nil), 400, want)
			}
		}
	}
}

// TestLogOfQueries sends long queries as a client without credentials. The server neither logs
// nor repeats them as a whole.
func TestLogOfQueries(t *testing.T) {
	t.Parallel()
	b := harness.New(t)
	if err := b.StartServer(t.Context()); err != nil {
		t.Fatal(err)
	}
	const most, end = 4 << 10, "the-last-request"
	client, before, requests := anonymous(t, b), len(b.Server.Output()), 0
	for _, name := range []string{
		"limit", "timeoutSeconds", "timeout", "watch", "watch=1&timeoutSeconds", "allowWatchBookmarks", "sendInitialEvents", "resourceVersion", "resourceVersionMatch",
		"continue", "labelSelector", "fieldSelector", "shardSelector", "pretty", "limit=x&a", "timeout=x&a", "a",
	} {
		for _, path := range []string{api + "/namespaces", "/api/v1/pods", "/api/v1/watch", "/apis/a/v1/proxy", "/version"} {
			answer := client.Do(t, "GET", path+"?"+name+"="+strings.Repeat("\xff", 200_000), nil)
			if answer.Code >= 500 || len(answer.Body) >= most {
				t.Errorf("GET %s?%s=...: %d with %d bytes", path, name, answer.Code, len(answer.Body))
			}
			requests++
		}
	}
	client.Do(t, "GET", "/api/v1/pods?limit="+end, nil)
	poll.Eventually(t, func() string {
		if !strings.Contains(b.Server.Output(), end) {
			return "the last request is not logged"
		}
		return ""
	})
	if logged := len(b.Server.Output()) - before; logged > requests*most {
		t.Errorf("%d bytes are logged for %d requests", logged, requests)
	}
}

// TestInvalidFieldManager checks that one error is returned for a field manager that is
// too long, and not one for each of its characters.
func TestInvalidFieldManager(t *testing.T) {
	t.Parallel()
	http := borough.HTTP(t)
	query := "?dryRun=All&fieldManager=" + strings.Repeat("%01", 129)
	for kind, request := range map[string]struct{ method, path string }{
		"CreateOptions": {"POST", api + "/namespaces"},
		"UpdateOptions": {"PUT", api + "/namespaces/default"},
		"PatchOptions":  {"PATCH", api + "/namespaces/default"},
	} {
		answer := http.Do(t, request.method, request.path+query, []byte("{}"), "Content-Type", "application/merge-patch+json")
		wantStatus(t, answer, 422, kind+`.meta.k8s.io "" is invalid: fieldManager: Too long: may not be more than 128 bytes`)
		if causes := answer.Status().Details.Causes; len(causes) != 1 {
			t.Errorf("%s: %d causes", kind, len(causes))
		}
	}
}
