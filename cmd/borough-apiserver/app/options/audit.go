// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package options

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"
	auditinternal "k8s.io/apiserver/pkg/apis/audit"
	"k8s.io/apiserver/pkg/audit"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/borough-io/borough/pkg/truncate"
)

const (
	// maxAuditedText is the maximum length in bytes of a path with its query, and of an audit ID,
	// in the audit event of a client that is not authenticated.
	maxAuditedText = 4 << 10
	// maxAuditedIPs is that of the addresses of such a client and its proxies.
	maxAuditedIPs = 100
)

// limitedAudit limits the audit events of clients that are not authenticated to the beginning of
// what they send: a backend keeps up to 10000 events in memory. Those of users are not limited: what
// is left out could be the selector of a DELETE.
type limitedAudit struct{ audit.Backend }

// ProcessEvents implements audit.Sink.
func (b limitedAudit) ProcessEvents(events ...*auditinternal.Event) bool {
	events = slices.Clone(events)
	for i, event := range events {
		if event.User.Username == "" || slices.Contains(event.User.Groups, user.AllUnauthenticated) {
			events[i] = limitEvent(event)
		}
	}
	return b.Backend.ProcessEvents(events...)
}

// limitEvent returns the event with what may be kept of it, without a reference to the rest. The
// event itself is used again.
func limitEvent(event *auditinternal.Event) *auditinternal.Event {
	limited := *event
	limited.RequestURI = limitText(limited.RequestURI)
	limited.AuditID = types.UID(limitText(string(limited.AuditID)))
	if ips := limited.SourceIPs; len(ips) > maxAuditedIPs {
		// The last one is that of the connection. The others are what the client says.
		limited.SourceIPs = append(slices.Clone(ips[:maxAuditedIPs-1]), ips[len(ips)-1])
	}
	return &limited
}

func limitText(text string) string { return strings.Clone(truncate.Text(text, maxAuditedText)) }
