// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"net/http"
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
	t.Cleanup(client.CloseIdleConnections)
	absent := sendWithoutBody(t, client, http.MethodPost, config.Host+api+"/namespaces/absent/pods")
	binding := sendWithoutBody(t, client, http.MethodPost, config.Host+rbacAPI+"/namespaces/"+ns+"/rolebindings")
	if err := syscall.Kill(b.Server.PID(), syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	poll.Eventually(t, func() string {
		if !strings.Contains(b.Server.Output(), "Stopped listening") {
			return "the server still listens"
		}
		return ""
	})
	wantAnswer(t, absent(`{"metadata":{"name":"p"},"spec":{"containers":[{"name":"c","image":"i"}]}}`), http.StatusNotFound)
	wantAnswer(t, binding(`{"metadata":{"name":"r"},"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"ClusterRole","name":"view"}}`), http.StatusCreated)
	<-b.Server.Done()
	if code := b.Server.ExitCode(); code != 0 {
		t.Errorf("exit code %d", code)
	}
}
