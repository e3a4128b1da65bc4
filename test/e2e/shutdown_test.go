// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"k8s.io/client-go/rest"

	"github.com/borough-io/borough/test/harness"
	"github.com/borough-io/borough/test/poll"
)

// TestRequestsInFlightAtShutdown ends a server while it waits for the bodies of requests. It
// still answers them: one that reads a Namespace that its caches do not have, and one that
// waits until its rights are in force.
func TestRequestsInFlightAtShutdown(t *testing.T) {
	t.Parallel()
	b := harness.New(t)
	if err := b.StartServer(t.Context()); err != nil {
		t.Fatal(err)
	}
	ns := newNamespace(t, b)
	config := b.Config(t, "admin")
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	var ends []func()
	for _, request := range []struct {
		path, body string
		want       int
	}{
		{api + "/namespaces/missing/pods", `{"metadata":{"name":"p"},"spec":{"containers":[{"name":"c","image":"i"}]}}`, http.StatusNotFound},
		{rbacAPI + "/namespaces/" + ns + "/rolebindings", `{"metadata":{"name":"r"},"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"ClusterRole","name":"view"}}`, http.StatusCreated},
	} {
		body, rest := io.Pipe()
		answered := make(chan error, 1)
		go func() {
			req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, config.Host+request.path, body)
			if err != nil {
				answered <- err
				return
			}
			req.Header.Set("Content-Type", asJSON)
			response, err := client.Do(req)
			if err != nil {
				answered <- err
				return
			}
			defer response.Body.Close()
			if response.StatusCode != request.want {
				text, _ := io.ReadAll(response.Body)
				err = fmt.Errorf("got %s, want %d\n%s", response.Status, request.want, text)
			}
			answered <- err
		}()
		ends = append(ends, func() {
			if _, err := io.WriteString(rest, request.body); err != nil {
				t.Error(err)
			}
			_ = rest.Close()
			if err := <-answered; err != nil {
				t.Errorf("POST %s: %v", request.path, err)
			}
		})
	}
	inFlight := regexp.MustCompile(`(?m)^apiserver_current_inflight_requests\{request_kind="mutating"\} 2$`)
	poll.Eventually(t, func() string {
		if metrics := string(wantAnswer(t, b.HTTP(t).Do(t, "GET", "/metrics", nil), 200).Body); !inFlight.MatchString(metrics) {
			return "the requests are not in flight"
		}
		return ""
	})
	if err := syscall.Kill(b.Server.PID(), syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	poll.Eventually(t, func() string {
		if !strings.Contains(b.Server.Output(), "Stopped listening") {
			return "the server still listens"
		}
		return ""
	})
	for _, end := range ends {
		end()
	}
	<-b.Server.Done()
	if code := b.Server.ExitCode(); code != 0 {
		t.Errorf("exit code %d", code)
	}
}
