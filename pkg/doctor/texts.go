// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"encoding/json"
	"regexp"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// What doctor recognizes by text is in this file, because nothing else says it:
//
//   - The aggregator has one reason for every request to the server that fails. What
//     failed is in the message of the condition only, and a request of doctor would
//     not be sent as long as the APIService is not available.
//   - An error Forbidden has the user in its message only.
//   - /readyz lists its checks as text.
//   - /health of a member of etcd has the alarm in a text.
//
// A text that is not recognized leads to a fix that is more general, not to a wrong
// one. The tests in test/kubernetes/doctor cause the faults in a real cluster, except
// for an expired certificate, and for a port that no process listens on: connections
// there go through a proxy.

// Reasons of the condition Available of an APIService. Package status/remote of
// k8s.io/kube-aggregator has no constants for them.
const (
	reasonServiceNotFound      = "ServiceNotFound"
	reasonServiceAccessError   = "ServiceAccessError"
	reasonServicePortError     = "ServicePortError"
	reasonEndpointsNotFound    = "EndpointsNotFound"
	reasonEndpointsAccessError = "EndpointsAccessError"
	reasonMissingEndpoints     = "MissingEndpoints"
	reasonFailedDiscovery      = "FailedDiscoveryCheck"
)

// discoveryFailure is a cause of reasonFailedDiscovery.
type discoveryFailure struct {
	// message matches the message of the aggregator ("bad status") or, in it, that of
	// Go's crypto/x509, net or net/http.
	message *regexp.Regexp
	// fix has the DNS name of the Service for SERVICE.
	fix string
	// unauthenticated means that the server did not authenticate the aggregator. The
	// aggregator sends requests as a member of system:masters, which the server allows
	// everything, so both 401 and 403 mean this.
	unauthenticated bool
}

// discoveryFailures are in the order in which they are compared.
var discoveryFailures = []discoveryFailure{
	{message: regexp.MustCompile(`x509: certificate is (valid for|not valid for any names)`),
		fix: "the serving certificate must be for the name SERVICE"},
	{message: regexp.MustCompile(`certificate has expired or is not yet valid`),
		fix: "renew the serving certificate, and see the check clocks"},
	{message: regexp.MustCompile(`x509:`),
		fix: "caBundle must contain the certificate of the CA that signed the serving certificate; see the check caBundle"},
	{message: regexp.MustCompile(`bad status from \S+: (401|403)\b`), unauthenticated: true,
		fix: "see the check " + checkFrontProxy},
	{message: regexp.MustCompile(`bad status`),
		fix: "check the log of the server; see the checks delegator binding and pods"},
	{message: regexp.MustCompile(`connection refused`),
		fix: "no process listens on the port: the targetPort of the Service must be --secure-port of the server"},
	{message: regexp.MustCompile(`(?i)timeout|timed out|deadline exceeded|no route to host`),
		fix: "kube-apiserver cannot reach the Pods: allow the control plane in firewalls and NetworkPolicies to connect to --secure-port of the server"},
}

// failureOf returns the cause of reasonFailedDiscovery, or nil if there is another
// reason or the message is not known.
func failureOf(condition metav1.Condition) *discoveryFailure {
	if condition.Status == metav1.ConditionTrue || condition.Reason != reasonFailedDiscovery {
		return nil
	}
	for i := range discoveryFailures {
		if discoveryFailures[i].message.MatchString(condition.Message) {
			return &discoveryFailures[i]
		}
	}
	return nil
}

// failedCheck matches a check that fails in the response to /readyz?verbose.
var failedCheck = regexp.MustCompile(`(?m)^\[-\](\S+) failed`)

// alarm matches an alarm in the response to /health of a member of etcd.
var alarm = regexp.MustCompile(`"reason":"ALARM (\w+)`)

var forbiddenUser = regexp.MustCompile(`User ("(?:[^"\\]|\\.)*")`)

// userIn returns the user that a Forbidden error names, or "".
func userIn(a *answer) string {
	var status metav1.Status
	_ = json.Unmarshal(a.body, &status) // a body that is not a Status names no user
	match := forbiddenUser.FindStringSubmatch(status.Message)
	if match == nil {
		return ""
	}
	name, _ := strconv.Unquote(match[1]) // quoted with %q
	return name
}
