// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"

	"github.com/borough-io/borough/test/harness"
	"github.com/borough-io/borough/test/poll"
	"github.com/borough-io/borough/test/tokenissuer"
)

// allPods is a path that only users with the right to all Pods can get.
const allPods = api + "/pods"

// withToken returns a client that sends a bearer token.
func withToken(t *testing.T, b *harness.Borough, token string) harness.HTTP {
	t.Helper()
	config := rest.AnonymousClientConfig(b.Config(t, "admin"))
	config.BearerToken = token
	return harness.NewHTTP(t, config)
}

// wantUser checks that the server takes requests for those of the user, who has no
// rights.
func wantUser(t *testing.T, client harness.HTTP, user string) {
	t.Helper()
	wantStatus(t, client.Do(t, "GET", allPods, nil), 403, fmt.Sprintf("User %q cannot list resource", user))
}

// inFile writes a file and returns its path.
func inFile(t *testing.T, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "file")
	replaceFile(t, path, content)
	return path
}

// replaceFile replaces a file as a whole.
func replaceFile(t *testing.T, path, content string) {
	t.Helper()
	if err := os.WriteFile(path+".new", []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		t.Fatal(err)
	}
}

// wantDescribedTokens checks what the OpenAPI documents say of authentication: whether there
// are tokens, and that requests can be unauthorized.
func wantDescribedTokens(t *testing.T, b *harness.Borough, tokens bool) {
	t.Helper()
	type schemes map[string]map[string]string
	type paths map[string]struct {
		Get struct {
			Responses map[string]struct{ Description string }
		}
	}
	var v2 struct {
		SecurityDefinitions schemes
		Security            []map[string][]string
		Paths               paths
	}
	var v3 struct {
		Components struct{ SecuritySchemes schemes }
		Paths      paths
	}
	admin := harness.NewHTTP(t, b.Config(t, "admin"))
	answer := wantAnswer(t, admin.Do(t, "GET", "/openapi/v2", nil, "Accept", "application/json"), 200)
	answer.JSON(t, &v2)
	if bytes.Contains(answer.Body, []byte("__internal")) {
		t.Error("OpenAPI has an internal version")
	}
	wantAnswer(t, admin.Do(t, "GET", "/openapi/v3"+api, nil, "Accept", "application/json"), 200).JSON(t, &v3)
	var want schemes
	var security []map[string][]string
	if tokens {
		want = schemes{"BearerToken": {"type": "apiKey", "in": "header", "name": "authorization", "description": "Bearer Token authentication"}}
		security = []map[string][]string{{"BearerToken": {}}}
	}
	wantEqual(t, "the schemes of OpenAPI 2", v2.SecurityDefinitions, want)
	wantEqual(t, "the schemes of OpenAPI 3", v3.Components.SecuritySchemes, want)
	wantEqual(t, "the security of OpenAPI 2", v2.Security, security)
	const path = api + "/namespaces"
	wantEqual(t, "401 in OpenAPI 2", v2.Paths[path].Get.Responses["401"].Description, "Unauthorized")
	wantEqual(t, "401 in OpenAPI 3", v3.Paths[path].Get.Responses["401"].Description, "Unauthorized")
}

func TestTokenFile(t *testing.T) {
	t.Parallel()
	b := harness.New(t)
	file := inFile(t, "secret,alice,1,\"team-a,team-b\"\nroot-secret,root,2,system:masters\n")
	if err := b.StartServer(t.Context(), "--token-auth-file="+file); err != nil {
		t.Fatal(err)
	}
	wantUser(t, withToken(t, b, "secret"), "alice")
	wantDescribedTokens(t, b, true)
	wantDescribedTokens(t, borough, false)
	wantAnswer(t, withToken(t, b, "root-secret").Do(t, "GET", allPods, nil), 200)
	for _, token := range []string{"wrong", "secre", "Secret", "secret,alice"} {
		wantStatus(t, withToken(t, b, token).Do(t, "GET", allPods, nil), 401, "Unauthorized")
		wantStatus(t, withToken(t, b, token).Do(t, "GET", "/readyz", nil), 401, "Unauthorized")
	}
	wantUser(t, anonymous(t, b), "system:anonymous")
	// A certificate counts before a token.
	controller := harness.NewHTTP(t, b.Config(t, "controller"))
	wantStatus(t, controller.Do(t, "GET", "/metrics", nil, "Authorization", "Bearer root-secret"), 403, `User "system:borough-controller-manager" cannot get path`)

	// A browser can't set headers of a websocket, so the token is in a protocol.
	protocol := "base64url.bearer.authorization.k8s.io." + base64.RawURLEncoding.EncodeToString([]byte("secret"))
	websocket := []string{"Connection", "Upgrade", "Upgrade", "websocket", "Sec-WebSocket-Version", "13", "Sec-WebSocket-Key", "AAAAAAAAAAAAAAAAAAAAAA=="}
	wantStatus(t, anonymous(t, b).Do(t, "GET", allPods+"?watch=true", nil, append(websocket, "Sec-WebSocket-Protocol", protocol+", v4.channel.k8s.io")...),
		403, `User "alice" cannot watch resource`)
	wantStatus(t, anonymous(t, b).Do(t, "GET", allPods+"?watch=true", nil, append(websocket, "Sec-WebSocket-Protocol", strings.TrimSuffix(protocol, "A")+"B, v4.channel.k8s.io")...),
		401, "Unauthorized")
}

// issuers returns an authentication configuration with the issuers. The claim groups
// has the groups.
func issuers(all ...*tokenissuer.Issuer) string {
	content := "apiVersion: apiserver.config.k8s.io/v1\nkind: AuthenticationConfiguration\njwt:\n"
	for _, i := range all {
		content += fmt.Sprintf("- issuer: {url: %q, audiences: [borough], certificateAuthority: %q}\n"+
			"  claimMappings: {username: {claim: sub, prefix: \"\"}, groups: {claim: groups, prefix: \"\"}}\n", i.URL, i.CA)
	}
	return content
}

// TestIssuers authenticates users by the tokens of two issuers, and changes the
// configuration to a bad one and back.
func TestIssuers(t *testing.T) {
	t.Parallel()
	b := harness.New(t)
	first, second := tokenissuer.New(t), tokenissuer.New(t)
	file := inFile(t, issuers(first))
	if err := b.StartServer(t.Context(), "--authentication-config="+file, "--token-auth-file="+inFile(t, "secret,carol,3")); err != nil {
		t.Fatal(err)
	}
	alice := withToken(t, b, first.Token(t, nil))
	bob := withToken(t, b, second.Token(t, map[string]any{"sub": "bob", "groups": []string{"team-b", "system:masters"}}))
	allowed := func() string {
		if answer := bob.Do(t, "GET", allPods, nil); answer.Code != 200 {
			return answer.String()
		}
		return ""
	}
	poll.Eventually(t, func() string { // the server fetches the keys when it has started
		if answer := alice.Do(t, "GET", allPods, nil); answer.Code != 403 {
			return answer.String()
		}
		return ""
	})
	wantUser(t, alice, "alice")
	wantUser(t, withToken(t, b, "secret"), "carol")
	wantStatus(t, bob.Do(t, "GET", allPods, nil), 401, "Unauthorized")
	for name, claims := range map[string]map[string]any{
		"expired":          {"exp": time.Now().Add(-time.Minute).Unix()},
		"another audience": {"aud": "other"},
		"another issuer":   {"iss": second.URL},
	} {
		if answer := withToken(t, b, first.Token(t, claims)).Do(t, "GET", allPods, nil); answer.Code != 401 {
			t.Errorf("%s: got %v, want 401", name, answer)
		}
	}

	reloads := func(status string) string {
		metrics := wantAnswer(t, b.HTTP(t).Do(t, "GET", "/metrics", nil), 200).Body
		return string(regexp.MustCompile(`(?m)^apiserver_authentication_config_controller_automatic_reloads_total\{.*status="` + status + `"\} (.*)$`).Find(metrics))
	}
	replaceFile(t, file, issuers(first, second))
	poll.Eventually(t, allowed)
	wantUser(t, alice, "alice")
	poll.Eventually(t, func() string {
		if got := reloads("success"); !strings.HasSuffix(got, " 1") {
			return "the metric of successful reloads is " + got
		}
		return ""
	})
	wantEqual(t, "failed reloads", reloads("failure"), "")

	wantContains(t, string(b.HTTP(t).Do(t, "GET", "/metrics", nil).Body),
		fmt.Sprintf(`,hash="sha256:%x"} 1`, sha256.Sum256([]byte(issuers(first, second)))))

	replaceFile(t, file, issuers(first, second)+"surprise: true\n")
	poll.Eventually(t, func() string {
		if got := reloads("failure"); !strings.HasSuffix(got, " 1") {
			return "the metric of failed reloads is " + got
		}
		return ""
	})
	wantEqual(t, "bob with the previous configuration", allowed(), "")
	wantUser(t, alice, "alice")
	if got := strings.Count(b.Server.Output(), "Failed to reload the authentication configuration"); got != 1 {
		t.Errorf("the failure was logged %d times", got)
	}
	wantContains(t, b.Server.Output(), `unknown field \"surprise\"`)

	grant(t, b, "default", "view", "alice")
	next := streamAs(t, alice, api+"/namespaces/default/pods", url.Values{"watch": {"true"}})
	replaceFile(t, file, issuers(second))
	poll.Eventually(t, func() string {
		if answer := alice.Do(t, "GET", allPods, nil); answer.Code != 401 {
			return answer.String()
		}
		return ""
	})
	// A watch that is open continues until its user has no right to it.
	createPod(t, b, "default", newPod("after"))
	wantEqual(t, "the event of a watch with a token that is not valid any more", next().Type, watch.Added)
	if err := rights(t, b).RoleBindings("default").Delete(t.Context(), "alice", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	wantEqual(t, "the event of this watch without its right", next().Type, watch.Error)
	wantEqual(t, "bob", allowed(), "")
}

// TestAnonymousAuth limits anonymous requests, by the flag and by the configuration.
func TestAnonymousAuth(t *testing.T) {
	t.Parallel()
	conditions := inFile(t, "apiVersion: apiserver.config.k8s.io/v1\nkind: AuthenticationConfiguration\nanonymous: {enabled: true, conditions: [{path: /livez}]}\n")
	for flag, want := range map[string]map[string]int{
		"--anonymous-auth":                      {"/livez": 200, "/readyz": 200, "/metrics": 403, allPods: 403},
		"--anonymous-auth=false":                {"/livez": 401, "/readyz": 401, "/metrics": 401, allPods: 401},
		"--authentication-config=" + conditions: {"/livez": 200, "/readyz": 401, "/metrics": 401, allPods: 401},
	} {
		b := harness.New(t)
		if err := b.StartServer(t.Context(), flag); err != nil {
			t.Fatal(err)
		}
		for path, code := range want {
			if answer := anonymous(t, b).Do(t, "GET", path, nil); answer.Code != code {
				t.Errorf("%s: GET %s: got %v, want %d", flag, path, answer, code)
			}
		}
	}
}

// TestBadAuthenticationFiles checks that a server does not start with a file that it
// cannot read, and that the error has the flag, the file, and the line or the field.
func TestBadAuthenticationFiles(t *testing.T) {
	t.Parallel()
	header := "apiVersion: apiserver.config.k8s.io/v1\nkind: AuthenticationConfiguration\n"
	for flag, files := range map[string]map[string]string{
		"--token-auth-file":       {"t,alice,1\nu,bob": "line 2 has 2 columns"},
		"--authentication-config": {header + "jwt: [": "line 3", header + "jwt: [{issuer: {audiences: [a]}}]": "jwt[0].issuer.url: Required value"},
	} {
		for content, want := range files {
			b := harness.New(t)
			var err error
			if b.Port, err = harness.FreePort(); err != nil {
				t.Fatal(err)
			}
			file := inFile(t, content)
			wantContains(t, failsToStart(t, append(b.ServerFlags(), flag+"="+file)...), flag+": "+file+": ", want)
		}
		missing := filepath.Join(t.TempDir(), "missing")
		b := harness.New(t)
		var err error
		if b.Port, err = harness.FreePort(); err != nil {
			t.Fatal(err)
		}
		wantContains(t, failsToStart(t, append(b.ServerFlags(), flag+"="+missing)...), flag, missing)
	}
}
