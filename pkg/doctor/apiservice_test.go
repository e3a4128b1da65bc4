// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestFixUnavailable uses the messages of kube-apiserver 1.36.
func TestFixUnavailable(t *testing.T) {
	const got = `failing or missing response from https://10.0.0.9:443/apis/x: Get "https://10.0.0.9:443/apis/x": `
	for _, tc := range []struct{ reason, message, want string }{
		{"ServiceNotFound", `service/s in "n" is not present`, "create the Service n/s"},
		{"ServicePortError", `service/s in "n" is not listening on port 443`, "spec.service.port"},
		{"EndpointsNotFound", `cannot find endpointslices for service/s in "n"`, "no server is ready"},
		{"MissingEndpoints", `endpointslices for service/s in "n" have no addresses with port name "https"`, "kubectl get pods --namespace=n"},
		{"EndpointsAccessError", "x", "log of kube-apiserver"},
		{"FailedDiscoveryCheck", got + "tls: failed to verify certificate: x509: certificate signed by unknown authority", "see the check caBundle"},
		{"FailedDiscoveryCheck", got + "tls: failed to verify certificate: x509: certificate is valid for localhost, not s.n.svc", "for the name s.n.svc"},
		{"FailedDiscoveryCheck", got + "tls: failed to verify certificate: x509: certificate has expired or is not yet valid: current time", "renew"},
		{"FailedDiscoveryCheck", got + "dial tcp 10.0.0.9:443: connect: connection refused", "--secure-port"},
		{"FailedDiscoveryCheck", got + "net/http: request canceled while waiting for connection (Client.Timeout exceeded while awaiting headers)", "NetworkPolicies"},
		{"FailedDiscoveryCheck", got + "context deadline exceeded (Client.Timeout exceeded while awaiting headers)", "NetworkPolicies"},
		{"FailedDiscoveryCheck", "failing or missing response from https://s: bad status from https://s: 403", checkFrontProxy},
		{"FailedDiscoveryCheck", "failing or missing response from https://s: bad status from https://s: 500", "log of the server"},
		{"FailedDiscoveryCheck", "anything else", "logs of kube-apiserver"},
	} {
		condition := metav1.Condition{Type: "Available", Status: metav1.ConditionFalse, Reason: tc.reason, Message: tc.message}
		if got := fixUnavailable(condition, serviceReference{"n", "s", 443}); !strings.Contains(got, tc.want) {
			t.Errorf("%s: %s: got %q, want %q", tc.reason, tc.message, got, tc.want)
		}
	}
}
