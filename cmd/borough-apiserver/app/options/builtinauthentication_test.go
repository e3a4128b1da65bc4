// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package options

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apiserver/pkg/server/dynamiccertificates"
)

// TestBuiltInAuthenticationFails checks that a file that cannot be used gets one line
// with the flag, the file, and the line or the field.
func TestBuiltInAuthenticationFails(t *testing.T) {
	const header = "apiVersion: apiserver.config.k8s.io/v1\nkind: AuthenticationConfiguration\n"
	for name, tc := range map[string]struct {
		tokens, config string // the content of the files
		anonymousSet   bool
		want           string // empty if there is no error
	}{
		"nothing":               {"", "", true, ""},
		"both":                  {"t,alice,1", header, true, ""},
		"anonymous in the file": {"", header + "anonymous: {enabled: false}", false, ""},
		"anonymous twice":       {"", header + "anonymous: {enabled: true}", true, "--anonymous-auth and the field anonymous in the file of --authentication-config cannot be used together"},
		"tokens":                {"t,alice,1\nt,bob,2", "", false, "--token-auth-file: DIR/tokens: line 2 has the token of line 1"},
		"a configuration":       {"", header + "jwt: [{}]", false, "--authentication-config: DIR/config: [jwt[0].issuer.url: Required value"},
		"an expression": {"", header + `jwt: [{issuer: {url: "https://a", audiences: [a]}, claimMappings: {username: {expression: "claims.("}}}]`, false,
			"--authentication-config: DIR/config: jwt[0].claimMappings.username.expression: Invalid value"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			file := func(name, content string) string {
				path := filepath.Join(dir, name)
				if content == "" {
					return ""
				}
				if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
					t.Fatal(err)
				}
				return path
			}
			o := New()
			o.BuiltInAuthentication = &BuiltInAuthenticationOptions{
				Anonymous: true, anonymousSet: tc.anonymousSet, TokenFile: file("tokens", tc.tokens), ConfigFile: file("config", tc.config),
			}
			generic := o.newGenericConfig()
			_, err := o.applyBuiltInAuthentication(generic, []dynamiccertificates.CAContentProvider{anyCA{}})
			if tc.want == "" {
				if err != nil || generic.Authentication.Authenticator == nil {
					t.Errorf("got %v, want an authenticator", err)
				}
				return
			}
			want := strings.ReplaceAll(tc.want, "DIR", dir)
			if err == nil || !strings.HasPrefix(err.Error(), want) || strings.Contains(err.Error(), "\n") {
				t.Errorf("got %v, want one line that begins with %q", err, want)
			}
		})
	}
}
