// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"net/http"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/borough-io/borough/test/poll"
)

// TestApplyAgain applies objects that are not stored as they are written. The second apply
// writes nothing.
func TestApplyAgain(t *testing.T) {
	t.Parallel()
	ns := newNamespace(t, borough)
	for _, test := range []struct{ name, path, body string }{
		{"RoleBinding without apiGroup", "/apis/rbac.authorization.k8s.io/v1/namespaces/$ns/rolebindings/again",
			`{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"RoleBinding","metadata":{"name":"again"},"roleRef":{"kind":"ClusterRole","name":"view"},"subjects":[{"kind":"User","name":"u"}]}`},
		{"Role with an empty list", "/apis/rbac.authorization.k8s.io/v1/namespaces/$ns/roles/again",
			`{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"Role","metadata":{"name":"again"},"rules":[{"verbs":["get"],"apiGroups":[""],"resources":["pods"],"resourceNames":[]}]}`},
		{"Lease with a time of another zone", "/apis/coordination.k8s.io/v1/namespaces/$ns/leases/again",
			`{"apiVersion":"coordination.k8s.io/v1","kind":"Lease","metadata":{"name":"again"},"spec":{"renewTime":"2020-01-02T03:04:05.000000+01:00"}}`},
		{"Event with a time of another zone", "/api/v1/namespaces/$ns/events/again",
			`{"apiVersion":"v1","kind":"Event","metadata":{"name":"again"},"involvedObject":{"namespace":"$ns"},"firstTimestamp":"2020-01-02T03:04:05+01:00"}`},
		{"Pod with an empty list", "/apis/tenancy.borough.io/v1/namespaces/$ns/pods/again",
			`{"apiVersion":"tenancy.borough.io/v1","kind":"Pod","metadata":{"name":"again"},"spec":{"containers":[{"name":"c","image":"i","args":[]}]}}`},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			inNamespace := strings.NewReplacer("$ns", ns)
			apply := func(code int) *metav1.PartialObjectMetadata {
				applied := &metav1.PartialObjectMetadata{}
				wantAnswer(t, borough.HTTP(t).Do(t, http.MethodPatch, inNamespace.Replace(test.path)+"?fieldManager=m",
					[]byte(inNamespace.Replace(test.body)), "Content-Type", string(types.ApplyYAMLPatchType)), code).JSON(t, applied)
				return applied
			}
			first := apply(http.StatusCreated)
			awaitLaterTime(t, first.ManagedFields)
			wantEqual(t, "resourceVersion", apply(http.StatusOK).ResourceVersion, first.ResourceVersion)
		})
	}
}

// awaitLaterTime waits until a write gets a later time in managedFields than the entries
// have. The times are in whole seconds.
func awaitLaterTime(t *testing.T, entries []metav1.ManagedFieldsEntry) {
	t.Helper()
	poll.Eventually(t, func() string {
		for _, entry := range entries {
			if time.Since(entry.Time.Time) < time.Second {
				return "the second of an entry is not over"
			}
		}
		return ""
	})
}
