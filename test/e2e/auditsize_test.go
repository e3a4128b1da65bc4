// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"fmt"
	"os"
	"strings"
	"testing"

	"k8s.io/client-go/rest"

	"github.com/borough-io/borough/test/harness"
	"github.com/borough-io/borough/test/poll"
)

// TestAuditOfUnauthenticatedClients sends long requests without credentials, and with a token that
// is not valid. The audit log has only the beginning of them, but the whole query of a user.
func TestAuditOfUnauthenticatedClients(t *testing.T) {
	t.Parallel()
	b, log := startAudited(t)
	invalid := rest.AnonymousClientConfig(b.Config(t, "admin"))
	invalid.BearerToken = "invalid"
	long := strings.Repeat("x", 200_000)
	for marker, request := range map[string]struct {
		client harness.HTTP
		code   int
	}{
		"anonymous": {anonymous(t, b), 403},
		"invalid":   {harness.NewHTTP(t, invalid), 401},
	} {
		path := "/api/v1/pods?" + marker
		wantAnswer(t, request.client.Do(t, "GET", path+"=uri"+long, nil), request.code)
		wantAnswer(t, request.client.Do(t, "GET", path+"=id", nil, "Audit-Id", long), request.code)
		wantAnswer(t, request.client.Do(t, "GET", path+"=ips", nil, "X-Forwarded-For", strings.Repeat("::1,", 50_000)), request.code)
	}
	wantAnswer(t, b.HTTP(t).Do(t, "GET", "/api/v1/pods?user=uri"+long, nil), 200)

	poll.Eventually(t, func() string {
		events, err := os.ReadFile(log)
		if err != nil {
			return err.Error()
		}
		for _, want := range []string{"anonymous=uri", "anonymous=id", "anonymous=ips", "invalid=uri", "invalid=id", "invalid=ips", "user=uri" + long} {
			if !bytes.Contains(events, []byte("?"+want)) {
				return fmt.Sprintf("there is no event with %.20s", want)
			}
		}
		for event := range bytes.Lines(events) {
			if len(event) > 16<<10 && !bytes.Contains(event, []byte("?user=")) {
				t.Errorf("an event has %d bytes: %.1000s", len(event), event)
			}
		}
		return ""
	})
}
