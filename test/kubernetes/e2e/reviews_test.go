// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"net/http"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/client-go/rest"

	"github.com/borough-io/borough/test/poll"
)

// TestReviews checks that a right in a namespace is reviewed once for all its
// objects. It does not run in parallel, so that other tests need few reviews
// at the same time.
func TestReviews(t *testing.T) {
	const (
		metric   = `apiserver_delegated_authz_request_total{code="201"} `
		requests = 300
		others   = 50
	)
	namespace := newNamespace(t)
	newClusterNamespace(t, namespace)
	user := newName("grace")
	grant(t, namespace, rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: "User", Name: user},
		rbacv1.PolicyRule{APIGroups: []string{"tenancy.borough.io"}, Resources: []string{"pods"}, Verbs: []string{"get", "list"}})
	config, err := cluster.UserConfig(user)
	if err != nil {
		t.Fatal(err)
	}
	client := newDirect(t, config)
	path := "/apis/tenancy.borough.io/v1/namespaces/" + namespace + "/pods/"
	poll.Eventually(t, func() string { // until the cluster's authorizer has the grant
		if answer := client.Do(t, http.MethodGet, path, nil); answer.Code != http.StatusOK {
			return answer.String()
		}
		return ""
	})
	before := readMetric(t, metric)
	for i := range requests {
		if answer := client.Do(t, http.MethodGet, fmt.Sprint(path, "pod-", i), nil); answer.Code != http.StatusNotFound {
			t.Fatalf("got %v", answer)
		}
	}
	if reviews := readMetric(t, metric) - before; reviews > others {
		t.Errorf("%d requests needed %d reviews", requests, reviews)
	}
	anonymous := newDirect(t, &rest.Config{})
	for _, path := range []string{path, "/apis/tenancy.borough.io/v1", "/metrics", "/openapi/v3"} {
		if answer := anonymous.Do(t, http.MethodGet, path, nil); answer.Code != http.StatusForbidden {
			t.Errorf("anonymous, %s: got %v", path, answer)
		}
	}
	for _, path := range []string{"/version", "/healthz", "/readyz", "/livez"} {
		if answer := anonymous.Do(t, http.MethodGet, path, nil); answer.Code != http.StatusOK {
			t.Errorf("anonymous, %s: got %v", path, answer)
		}
	}
}
