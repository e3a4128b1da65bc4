// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package certificates

import (
	"context"
	"crypto/x509"
	"testing"

	certutil "k8s.io/client-go/util/cert"

	"github.com/borough-io/borough/test/poll"
)

// await polls the condition until it returns nil, for at most the timeout.
func await(t *testing.T, what string, condition func(context.Context) error) {
	t.Helper()
	if err := poll.Until(t.Context(), timeout, condition); err != nil {
		t.Fatalf("wait for the %s: %v", what, err)
	}
}

func parse(text []byte) ([]*x509.Certificate, error) { return certutil.ParseCertsPEM(text) }
