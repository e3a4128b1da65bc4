// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package authentication

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"io"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"

	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/apiserver/pkg/server/egressselector"
	"k8s.io/klog/v2"
)

const (
	header = "apiVersion: apiserver.config.k8s.io/v1\nkind: AuthenticationConfiguration\n"
	// minimal is the shortest configuration with an issuer.
	minimal = header + `jwt:
- issuer: {url: "https://issuer.example", audiences: [borough]}
  claimMappings: {username: {claim: sub, prefix: ""}}
`
)

func TestConfigs(t *testing.T) {
	jwt := func(claimMappings string) string {
		return header + `jwt: [{issuer: {url: "https://issuer.example", audiences: [borough]}, claimMappings: ` + claimMappings + `}]`
	}
	many := "jwt:\n"
	for range 65 {
		many += `- {issuer: {url: "https://issuer.example", audiences: [a]}, claimMappings: {username: {claim: sub, prefix: ""}}}` + "\n"
	}
	for name, tc := range map[string]struct {
		content string
		err     string // empty if it is valid
	}{
		"nothing":           {header, ""},
		"no issuers":        {header + "jwt: []", ""},
		"an issuer":         {minimal, ""},
		"JSON":              {`{"apiVersion": "apiserver.config.k8s.io/v1", "kind": "AuthenticationConfiguration"}`, ""},
		"v1beta1":           {strings.Replace(minimal, "config.k8s.io/v1", "config.k8s.io/v1beta1", 1), ""},
		"v1alpha1":          {strings.Replace(minimal, "apiserver.config.k8s.io/v1", "apiserver.config.k8s.io/v1alpha1", 1), ""},
		"expressions":       {jwt(`{username: {expression: "'oidc:' + claims.sub"}, groups: {expression: "claims.roles.split(',')"}}`), ""},
		"anonymous":         {header + "anonymous: {enabled: true, conditions: [{path: /livez}]}", ""},
		"empty":             {"", "the file is empty"},
		"a comment":         {"# nothing", "the kind must be AuthenticationConfiguration"},
		"not YAML":          {header + "jwt: [", "line 3"},
		"a tab":             {header + "jwt:\n\t- issuer: {}", "line 4"},
		"no version":        {"kind: AuthenticationConfiguration", "the apiVersion must be apiserver.config.k8s.io/v1"},
		"another version":   {strings.Replace(header, "/v1", "/v2", 1), `no kind "AuthenticationConfiguration" is registered for version "apiserver.config.k8s.io/v2"`},
		"another kind":      {strings.Replace(header, "AuthenticationC", "AuthorizationC", 1), "the kind must be AuthenticationConfiguration, not AuthorizationConfiguration"},
		"an unknown field":  {header + "jwts: []", `unknown field "jwts"`},
		"a field twice":     {header + "jwt: []\njwt: []", `"jwt" already set`},
		"no URL":            {strings.Replace(minimal, "https://issuer.example", "", 1), "jwt[0].issuer.url: Required value"},
		"HTTP":              {strings.Replace(minimal, "https", "http", 1), "jwt[0].issuer.url: Invalid value"},
		"no audiences":      {strings.Replace(minimal, "[borough]", "[]", 1), "jwt[0].issuer.audiences: Required value"},
		"no user name":      {jwt("{}"), "jwt[0].claimMappings.username"},
		"no CA":             {strings.Replace(minimal, "audiences:", "certificateAuthority: x, audiences:", 1), "jwt[0].issuer.certificateAuthority: Invalid value"},
		"the same issuer":   {minimal + strings.TrimPrefix(minimal, header+"jwt:\n"), "jwt[1].issuer.url: Duplicate value"},
		"a bad expression":  {jwt(`{username: {expression: "claims.("}}`), "jwt[0].claimMappings.username.expression: Invalid value"},
		"too many":          {header + many, "jwt: Too many"},
		"a way to issuers":  {strings.Replace(minimal, "audiences:", "egressSelectorType: cluster, audiences:", 1), "jwt[0].issuer.egressSelectorType: Invalid value"},
		"anonymous at odds": {header + "anonymous: {enabled: false, conditions: [{path: /livez}]}", "anonymous.conditions: Invalid value"},
	} {
		t.Run(name, func(t *testing.T) {
			config, err := parseConfig([]byte(tc.content), nil)
			if tc.err == "" {
				if err != nil || config == nil {
					t.Errorf("got %v, want it to be valid", err)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), tc.err) || strings.Contains(err.Error(), "\n") {
				t.Errorf("got %v, want one line with %q", err, tc.err)
			}
		})
	}

	const field = "jwt[0].issuer.egressSelectorType: Invalid value"
	// As a file with only the selection cluster.
	lookup := func(network egressselector.NetworkContext) (utilnet.DialFunc, error) {
		if network != egressselector.Cluster.AsNetworkContext() {
			return nil, nil
		}
		return (&net.Dialer{}).DialContext, nil
	}
	for kind, want := range map[string]string{"cluster": "", "controlplane": field} {
		_, err := parseConfig([]byte(strings.Replace(minimal, "audiences:", "egressSelectorType: "+kind+", audiences:", 1)), lookup)
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("with a way to the issuers, %s: got %v, want %q", kind, err, want)
		}
	}
}

// FuzzAuthenticationConfig checks that a configuration is refused with one line, or can
// be used; and that its issuers accept no token that they have not signed. The cost of
// both is bounded.
func FuzzAuthenticationConfig(f *testing.F) {
	klog.SetOutput(io.Discard)
	klog.LogToStderr(false)
	for _, seed := range []string{
		"", header, minimal, header + "anonymous: {enabled: true, conditions: [{path: /livez}]}", header + "jwt: [",
		strings.Replace(minimal, "claim: sub, prefix: \"\"", "expression: claims.sub", 1) +
			"  claimValidationRules: [{claim: hd, requiredValue: a}, {expression: 'claims.exp - claims.nbf <= 86400', message: m}]\n" +
			"  userValidationRules: [{expression: \"!user.username.startsWith('system:')\", message: m}]\n",
		"a: &a [x,x]\nb: &b [*a,*a]\nc: [*b,*b]",
	} {
		f.Add([]byte(seed))
	}
	ended, end := context.WithCancel(context.Background())
	end() // so that the issuers connect to nothing
	unsigned := unsignedToken(f)
	f.Fuzz(func(t *testing.T, content []byte) {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		config, err := parseConfig(content, nil)
		if err == nil {
			var all *issuers
			if all, err = newIssuers(ended, config, nil, nil, ""); err != nil {
				t.Fatalf("it is valid, but cannot be used: %v", err)
			}
			for _, token := range []string{"", "a.b.c", unsigned} {
				if response, ok, _ := all.AuthenticateToken(t.Context(), token); ok {
					t.Errorf("the token %q is that of %v", token, response.User)
				}
			}
			all.cancelAdded()
		} else if strings.Contains(err.Error(), "\n") {
			t.Errorf("the error is not one line: %q", err)
		}
		runtime.ReadMemStats(&after)
		if used, bound := after.TotalAlloc-before.TotalAlloc, uint64(64<<20+10_000*len(content)); used > bound {
			t.Errorf("%d bytes cost %d, more than %d", len(content), used, bound)
		}
	})
}

// unsignedToken returns a token of the issuer in minimal without a signature.
func unsignedToken(tb testing.TB) string {
	tb.Helper()
	claims, err := json.Marshal(map[string]any{"iss": "https://issuer.example", "aud": "borough", "sub": "alice", "exp": 1 << 40})
	if err != nil {
		tb.Fatal(err)
	}
	encode := base64.RawURLEncoding.EncodeToString
	return encode([]byte(`{"alg":"none"}`)) + "." + encode(claims) + "."
}

// TestDocumentedFiles reads the files in docs/authentication.md.
func TestDocumentedFiles(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "authentication.md"))
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]int{}
	for _, block := range regexp.MustCompile("(?ms)^( *)```(yaml|csv)\n(.*?)^ *```").FindAllStringSubmatch(string(text), -1) {
		content := []byte(strings.ReplaceAll("\n"+block[3], "\n"+block[1], "\n"))
		files[block[2]]++
		switch block[2] {
		case "yaml":
			_, err = parseConfig(content, nil)
		case "csv":
			_, err = parseTokens(content)
		}
		if err != nil {
			t.Errorf("%v in\n%s", err, content)
		}
	}
	if files["yaml"] != 2 || files["csv"] != 1 {
		t.Errorf("found %v", files)
	}
}
