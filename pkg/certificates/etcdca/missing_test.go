// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package etcdca

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestMissing deletes a Secret. The other certificate is replaced all the same, but no CA
// is created: the Secret could be restored with a certificate.
func TestMissing(t *testing.T) {
	for _, missing := range []string{"client", "member"} {
		s := newSecrets()
		s.issue(t, newConfig())
		if err := s.CoreV1().Secrets("borough-system").Delete(t.Context(), missing, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		other := map[string]string{"client": "member", "member": "client"}[missing]
		s.set(t, other, nil)
		sync := func() {
			if _, err := s.issuer(t, newConfig()).sync(t.Context()); err == nil || !strings.Contains(err.Error(), missing+" does not exist") {
				t.Errorf("without the Secret %s: %v", missing, err)
			}
		}
		if sync(); len(s.get(t, other).Data) == 0 {
			t.Errorf("without the Secret %s, no certificate was issued for %s", missing, other)
		}
		s.set(t, "ca", nil)
		s.set(t, other, nil)
		if sync(); len(s.get(t, "ca").Data) > 0 {
			t.Errorf("without the Secret %s, a CA was created", missing)
		}
	}
}
