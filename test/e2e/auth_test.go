// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/client-go/rest"

	"github.com/borough-io/borough/test/harness"
	"github.com/borough-io/borough/test/poll"
)

// anonymous returns a client without credentials that trusts the server's CA.
func anonymous(t *testing.T, b *harness.Borough) harness.HTTP {
	return harness.NewHTTP(t, rest.AnonymousClientConfig(b.Config(t, "admin")))
}

func TestAnonymous(t *testing.T) {
	t.Parallel()
	client := anonymous(t, borough)
	wantAnswer(t, client.Do(t, "GET", "/version", nil), 200)
	for _, path := range []string{"/livez", "/readyz", "/healthz"} {
		answer := wantAnswer(t, client.Do(t, "GET", path, nil), 200)
		wantEqual(t, path, string(answer.Body), "ok")
	}
	for _, path := range []string{
		"/", "/api", "/apis", "/metrics", "/openapi/v2", "/openapi/v3", "/debug/pprof/", "/healthz/../apis",
		api, api + "/namespaces", api + "/namespaces/default", api + "/pods", "/nonsense",
	} {
		if answer := client.Do(t, "GET", path, nil); answer.Code != 403 {
			t.Errorf("GET %s: got %v, want 403", path, answer)
		}
	}
	wantStatus(t, client.Do(t, "DELETE", api+"/namespaces/default", nil), 403, `User "system:anonymous" cannot delete resource "namespaces"`)
}

// TestMonitoring checks what members of system:monitoring may get, and that the flags
// have the values that the server uses.
func TestMonitoring(t *testing.T) {
	t.Parallel()
	monitoring, outsider := as(t, borough, "prometheus", "system:monitoring"), as(t, borough, "prometheus")
	for _, path := range []string{"/metrics", "/metrics/slis", "/flagz", "/statusz", "/livez/ping", "/readyz/etcd"} {
		wantAnswer(t, monitoring.Do(t, "GET", path, nil), 200)
		wantStatus(t, outsider.Do(t, "GET", path, nil), 403, `cannot get path "`+path+`"`)
	}
	var got struct{ Flags map[string]string }
	wantAnswer(t, monitoring.Do(t, "GET", "/flagz", nil, "Accept", "application/json;as=Flagz;v=v1beta1;g=config.k8s.io"), 200).JSON(t, &got)
	wantEqual(t, "--standalone", got.Flags["standalone"], "true")
	wantEqual(t, "--bind-address, a default", got.Flags["bind-address"], "127.0.0.1")
}

// TestUnknownCertificate checks that a certificate of another CA, one with too many others, or
// a bearer token, does not authenticate.
func TestUnknownCertificate(t *testing.T) {
	t.Parallel()
	config := rest.CopyConfig(borough.Config(t, "admin"))
	other := alone.Config(t, "admin")
	config.CertData, config.KeyData = other.CertData, other.KeyData
	wantStatus(t, harness.NewHTTP(t, config).Do(t, "GET", api+"/namespaces", nil), 401, "Unauthorized")
	admin := borough.Config(t, "admin")
	config.CertData, config.KeyData = bytes.Repeat(admin.CertData, 10), admin.KeyData
	wantAnswer(t, harness.NewHTTP(t, config).Do(t, "GET", api+"/namespaces", nil), 200)
	config.CertData = bytes.Repeat(admin.CertData, 11)
	wantStatus(t, harness.NewHTTP(t, config).Do(t, "GET", api+"/namespaces", nil), 401, "Unauthorized")
	poll.Eventually(t, func() string {
		const reason = "the client sent 11 certificates, more than the maximum of 10"
		if !strings.Contains(borough.Server.Output(), reason) {
			return "not in the log: " + reason
		}
		return ""
	})
	config = rest.AnonymousClientConfig(config)
	config.BearerToken = "guessed"
	wantStatus(t, harness.NewHTTP(t, config).Do(t, "GET", api+"/namespaces", nil), 401, "Unauthorized")
}

// TestImpersonation checks that headers do not change the user of a request.
func TestImpersonation(t *testing.T) {
	t.Parallel()
	headers := []string{"Impersonate-User", "borough-admin", "Impersonate-Group", "system:masters", "X-Remote-User", "borough-admin", "X-Remote-Group", "system:masters"}
	if answer := anonymous(t, borough).Do(t, "GET", api+"/namespaces", nil, headers...); answer.Code != 403 {
		t.Errorf("anonymous with headers: got %v, want 403", answer)
	}
	controller := harness.NewHTTP(t, borough.Config(t, "controller"))
	if answer := controller.Do(t, "POST", api+"/namespaces", []byte(`{}`), headers...); answer.Code != 403 {
		t.Errorf("the controller with headers: got %v, want 403", answer)
	}
}

// TestControllerRights checks that the controller has the rights that it needs,
// and no others.
func TestControllerRights(t *testing.T) {
	t.Parallel()
	ns := newNamespace(t, borough)
	createPod(t, borough, ns, newPod("p"))
	controller := harness.NewHTTP(t, borough.Config(t, "controller"))
	in := api + "/namespaces/" + ns
	for _, test := range []struct {
		method, path, body string
		allowed            bool
	}{
		{"GET", "/apis", "", true},
		{"GET", api, "", true},
		{"GET", api + "/namespaces", "", true},
		{"GET", in, "", true},
		{"GET", in + "/pods", "", true},
		{"GET", api + "/pods", "", true},
		{"DELETE", in + "/limitranges", "{}", false},
		{"POST", api + "/namespaces", `{"metadata":{"name":"x"}}`, false},
		{"PUT", in, `{"metadata":{"name":"x"}}`, false},
		{"PATCH", in, `{}`, false},
		{"POST", in + "/pods", `{}`, false},
		{"PUT", in + "/pods/p", `{}`, false},
		{"PATCH", in + "/pods/p", `{}`, false},
		{"PUT", in + "/pods/p/status", `{}`, false},
		{"POST", in + "/pods/p/binding", `{}`, false},
		{"GET", "/metrics", "", false},
		{"GET", "/debug/pprof/", "", false},
		{"GET", "/logs", "", false},
	} {
		answer := controller.Do(t, test.method, test.path, []byte(test.body), "Content-Type", asJSON)
		if test.allowed {
			if answer.Code/100 != 2 {
				t.Errorf("%s %s: got %v, want it to be allowed", test.method, test.path, answer)
			}
		} else if answer.Code != 403 {
			t.Errorf("%s %s: got %v, want it to be rejected", test.method, test.path, answer)
		}
	}
}

// TestFileModes checks that only the owner can read keys and kubeconfigs.
func TestFileModes(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"admin.kubeconfig", "controller.kubeconfig"} {
		info, err := os.Stat(filepath.Join(borough.Dir, name))
		if err != nil {
			t.Error(err)
		} else if info.Mode().Perm() != 0o600 {
			t.Errorf("%s has mode %o, want 600", name, info.Mode().Perm())
		}
	}
	keys, err := filepath.Glob(filepath.Join(borough.Dir, "pki", "*.key"))
	if err != nil || len(keys) == 0 {
		t.Fatalf("found no keys: %v", err)
	}
	for _, key := range keys {
		info, err := os.Stat(key)
		if err != nil {
			t.Error(err)
		} else if info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s has mode %o, so other users can read it", key, info.Mode().Perm())
		}
	}
}
