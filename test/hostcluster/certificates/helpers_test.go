// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package certificates

import (
	"context"
	"crypto/x509"
	"testing"
	"time"

	certutil "k8s.io/client-go/util/cert"
)

// await asks, every now and then, until there is no reason to go on. It takes
// at most the timeout.
func await(t *testing.T, what string, condition func(context.Context) error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), timeout)
	defer cancel()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		reason := condition(ctx)
		if reason == nil {
			return
		}
		select {
		case <-ctx.Done():
			t.Fatalf("wait for the %s: %v", what, reason)
		case <-tick.C:
		}
	}
}

func parse(text []byte) ([]*x509.Certificate, error) { return certutil.ParseCertsPEM(text) }
