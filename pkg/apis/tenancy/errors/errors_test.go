// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package errors

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	v1 "github.com/borough-io/borough/pkg/apis/tenancy/v1"
	clientset "github.com/borough-io/borough/pkg/generated/clientset/versioned"
)

// TestIsObjectNotFound asks it about the error of a client for each response of a server.
func TestIsObjectNotFound(t *testing.T) {
	status := func(err *apierrors.StatusError) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(int(err.ErrStatus.Code))
			err.ErrStatus.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}
			if err := json.NewEncoder(w).Encode(err.ErrStatus); err != nil {
				t.Error(err)
			}
		}
	}
	for name, test := range map[string]struct {
		response http.HandlerFunc
		want     bool
	}{
		"not found":            {status(apierrors.NewNotFound(v1.Resource("namespaces"), "ns")), true},
		"404 without a Status": {http.NotFound, false},
		"another UID":          {status(apierrors.NewConflict(v1.Resource("namespaces"), "ns", nil)), false},
		"forbidden":            {status(apierrors.NewForbidden(v1.Resource("namespaces"), "ns", nil)), false},
		"deleted":              {status(&apierrors.StatusError{ErrStatus: metav1.Status{Status: metav1.StatusSuccess, Code: http.StatusOK}}), false},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(test.response)
			defer server.Close()
			client, err := clientset.NewForConfig(&rest.Config{Host: server.URL})
			if err != nil {
				t.Fatal(err)
			}
			err = client.TenancyV1().Namespaces().Delete(t.Context(), "ns", metav1.DeleteOptions{})
			for _, err := range []error{err, fmt.Errorf("delete: %w", err)} {
				if got := IsObjectNotFound(err); got != test.want {
					t.Errorf("%v: got %t", err, got)
				}
			}
		})
	}
}
