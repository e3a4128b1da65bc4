// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package authentication

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	apiserverapi "k8s.io/apiserver/pkg/apis/apiserver"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/textlogger"

	"github.com/borough-io/borough/test/poll"
	"github.com/borough-io/borough/test/tokenissuer"
)

// of returns a configuration with the issuers.
func of(all ...*tokenissuer.Issuer) string {
	content := header + "jwt:\n"
	for _, i := range all {
		content += fmt.Sprintf("- issuer: {url: %q, audiences: [borough], certificateAuthority: %q}\n  claimMappings: {username: {claim: sub, prefix: \"\"}}\n", i.URL, i.CA)
	}
	return content
}

// started is a configuration file that is followed.
type started struct {
	*ConfigFile
	log *log
}

// log keeps what is logged.
type log struct {
	mu      sync.Mutex
	content bytes.Buffer
}

func (l *log) Write(line []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.content.Write(line)
}

func (l *log) count(text string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Count(l.content.String(), text)
}

func start(t *testing.T, content string) started {
	t.Helper()
	path := filepath.Join(t.TempDir(), "authentication.yaml")
	write(t, path, content)
	file, err := ReadConfigFile(path, nil, "")
	if err != nil {
		t.Fatal(err)
	}
	log := &log{}
	ctx, cancel := context.WithCancel(klog.NewContext(context.Background(), textlogger.NewLogger(textlogger.NewConfig(textlogger.Output(log)))))
	t.Cleanup(cancel)
	if err := file.Start(ctx); err != nil {
		t.Fatal(err)
	}
	return started{file, log}
}

// user returns the user of a token, or why there is none.
func (s started) user(t *testing.T, token string) string {
	t.Helper()
	response, ok, err := s.AuthenticateToken(t.Context(), token)
	if !ok {
		return fmt.Sprintf("none, %v", err)
	}
	return response.User.GetName()
}

// await waits until the token is that of a user.
func (s started) await(t *testing.T, token, user string) {
	t.Helper()
	poll.Eventually(t, func() string {
		if got := s.user(t, token); !strings.HasPrefix(got, user) {
			return "the user is " + got
		}
		return ""
	})
}

// awaitLog waits until a text was logged n times.
func (s started) awaitLog(t *testing.T, text string, n int) {
	t.Helper()
	poll.Eventually(t, func() string {
		if got := s.log.count(text); got != n {
			return fmt.Sprintf("%q was logged %d times, want %d", text, got, n)
		}
		return ""
	})
}

const (
	reloaded = "Reloaded the authentication configuration"
	failed   = "Failed to reload the authentication configuration"
)

func TestConfigFileReload(t *testing.T) {
	first, second := tokenissuer.New(t), tokenissuer.New(t)
	file := start(t, of(first))
	alice, bob := first.Token(t, nil), second.Token(t, map[string]any{"sub": "bob"})
	file.await(t, alice, "alice")
	if got := file.user(t, bob); !strings.HasPrefix(got, "none") {
		t.Errorf("the token of an issuer that is not configured is that of %s", got)
	}

	write(t, file.path, of(second, first))
	file.await(t, bob, "bob")
	file.awaitLog(t, reloaded, 1)

	for n, content := range []string{"", header + "jwts: []", of(first, first), header + "anonymous: {enabled: true}", header + "jwt: ["} {
		write(t, file.path, content)
		file.awaitLog(t, failed, n+1)
		for token, want := range map[string]string{alice: "alice", bob: "bob"} {
			if got := file.user(t, token); got != want {
				t.Errorf("after %q the user is %s, want %s", content, got, want)
			}
		}
	}

	// An issuer that is removed is so at once, although its token is in the cache.
	write(t, file.path, of(second))
	file.awaitLog(t, reloaded, 2)
	if got := file.user(t, alice); !strings.HasPrefix(got, "none") {
		t.Errorf("the token of an issuer that was removed is that of %s", got)
	}
	if got := file.user(t, bob); got != "bob" {
		t.Errorf("the user is %s, want bob", got)
	}

	// An issuer that is changed is not the previous one.
	write(t, file.path, strings.Replace(of(second), "[borough]", "[changed]", 1))
	file.awaitLog(t, reloaded, 3)
	if got := file.user(t, bob); !strings.HasPrefix(got, "none") {
		t.Errorf("the token for an audience that was removed is that of %s", got)
	}
	if got := file.user(t, second.Token(t, map[string]any{"sub": "bob", "aud": "changed"})); got != "bob" {
		t.Errorf("the user is %s, want bob", got)
	}
}

// TestRetire checks that only an issuer that is removed or changed ends, when requests that use it
// have had time to end.
func TestRetire(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		running := map[string]context.Context{}
		newFake := func(name, url, audience string) *issuer {
			ctx, cancel := context.WithCancel(t.Context())
			running[name] = ctx
			return &issuer{
				config: apiserverapi.JWTAuthenticator{Issuer: apiserverapi.Issuer{URL: url, Audiences: []string{audience}}},
				cancel: cancel,
			}
		}
		kept := newFake("kept", "https://a", "x")
		previous := &issuers{all: []*issuer{kept, newFake("changed", "https://b", "x"), newFake("removed", "https://c", "x")}}
		previous.retire(&issuers{all: []*issuer{kept, newFake("added", "https://b", "y")}}, "")
		for _, step := range []struct {
			after time.Duration
			want  []string
		}{
			{drain - 1, []string{"added", "changed", "kept", "removed"}},
			{drain, []string{"added", "kept"}},
		} {
			time.Sleep(step.after)
			synctest.Wait()
			maps.DeleteFunc(running, func(_ string, ctx context.Context) bool { return ctx.Err() != nil })
			if got := slices.Sorted(maps.Keys(running)); !slices.Equal(got, step.want) {
				t.Errorf("%v later, %q are running, want %q", step.after, got, step.want)
			}
		}
	})
}

// TestConfigFileIsReplaced changes the file in the ways in which editors and
// Kubernetes do.
func TestConfigFileIsReplaced(t *testing.T) {
	put := func(t *testing.T, path, content string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for name, replace := range map[string]func(t *testing.T, file started, content string){
		"renamed":          func(t *testing.T, file started, content string) { write(t, file.path, content) },
		"written in place": func(t *testing.T, file started, content string) { put(t, file.path, content) },
		"removed and created": func(t *testing.T, file started, content string) {
			if err := os.Rename(file.path, file.path+"~"); err != nil {
				t.Fatal(err)
			}
			file.awaitLog(t, failed, 1)
			put(t, file.path, content)
		},
		"a volume": func(t *testing.T, file started, content string) {
			link := func(target, path string) {
				t.Helper()
				if err := os.Symlink(target, path+".new"); err != nil {
					t.Fatal(err)
				}
				if err := os.Rename(path+".new", path); err != nil {
					t.Fatal(err)
				}
			}
			dir, name := filepath.Split(file.path)
			for version, content := range map[string]string{"..1": header, "..2": content} {
				if err := os.Mkdir(filepath.Join(dir, version), 0o700); err != nil {
					t.Fatal(err)
				}
				put(t, filepath.Join(dir, version, name), content)
			}
			link("..1", filepath.Join(dir, "..data"))
			link(filepath.Join("..data", name), file.path)
			link("..2", filepath.Join(dir, "..data"))
		},
	} {
		t.Run(name, func(t *testing.T) {
			first := tokenissuer.New(t)
			file := start(t, header)
			replace(t, file, of(first))
			file.await(t, first.Token(t, nil), "alice")
		})
	}
}

// TestConfigFileWithIssuerDown checks that a change waits for the issuers that it adds,
// and for no others.
func TestConfigFileWithIssuerDown(t *testing.T) {
	up, down, removed := tokenissuer.New(t), tokenissuer.New(t), tokenissuer.New(t)
	down.SetDown(true)
	file := start(t, of(down, removed))
	file.await(t, removed.Token(t, nil), "alice")
	if got := file.user(t, down.Token(t, nil)); !strings.HasPrefix(got, "none") {
		t.Errorf("the issuer is down, and the user of its token is %s", got)
	}
	write(t, file.path, of(up, down))
	file.await(t, up.Token(t, nil), "alice")
	if got := file.user(t, removed.Token(t, nil)); !strings.HasPrefix(got, "none") {
		t.Errorf("the token of an issuer that was removed is that of %s", got)
	}

	added := tokenissuer.New(t)
	added.SetDown(true)
	next, err := parseConfig([]byte(of(up, added)), nil)
	if err != nil {
		t.Fatal(err)
	}
	all, err := newIssuers(t.Context(), next, file.current.Load(), nil, "")
	if err != nil {
		t.Fatal(err)
	}
	defer all.cancelAdded()
	poll.Eventually(t, func() string { // until there is time for an answer
		err := all.await(t.Context(), 500*time.Millisecond)
		if err == nil {
			t.Fatal("an issuer that is down was added")
		}
		if !strings.Contains(err.Error(), "503") || strings.Contains(err.Error(), "\n") {
			return fmt.Sprintf("an issuer that is down was added: got %v, want one line with its answer", err)
		}
		return ""
	})
}

// TestTokenClaims checks what of a token is verified, and what is taken from it.
func TestTokenClaims(t *testing.T) {
	i, other := tokenissuer.New(t), tokenissuer.New(t)
	file := start(t, fmt.Sprintf(`%sjwt:
- issuer: {url: %q, audiences: [borough, second], audienceMatchPolicy: MatchAny, certificateAuthority: %q}
  claimValidationRules:
  - {expression: "claims.hd == 'example.com'", message: wrong domain}
  claimMappings:
    username: {claim: sub, prefix: "oidc:"}
    groups: {claim: roles, prefix: "oidc:"}
    uid: {claim: id}
  userValidationRules:
  - {expression: "!user.username.contains('root')", message: reserved}
`, header, i.URL, i.CA))
	claims := func(changes map[string]any) map[string]any {
		all := map[string]any{"hd": "example.com", "roles": []string{"a", "b"}, "id": "7"}
		for claim, value := range changes {
			all[claim] = value
		}
		return all
	}
	file.await(t, i.Token(t, claims(nil)), "oidc:alice")
	response, _, err := file.AuthenticateToken(t.Context(), i.Token(t, claims(nil)))
	if err != nil {
		t.Fatal(err)
	}
	if got := response.User; got.GetUID() != "7" || fmt.Sprint(got.GetGroups()) != "[oidc:a oidc:b]" {
		t.Errorf("the user is %v", got)
	}
	valid := i.Token(t, claims(nil))
	for name, tc := range map[string]struct {
		token string
		want  string // of the user or of the error
	}{
		"another audience":    {i.Token(t, claims(map[string]any{"aud": "second"})), "oidc:alice"},
		"one of the two":      {i.Token(t, claims(map[string]any{"aud": []string{"x", "borough"}})), "oidc:alice"},
		"a wrong audience":    {i.Token(t, claims(map[string]any{"aud": "x"})), "none, oidc: verify token: oidc: expected audience"},
		"expired":             {i.Token(t, claims(map[string]any{"exp": time.Now().Add(-time.Hour).Unix()})), "none, oidc: verify token: oidc: token is expired"},
		"not valid yet":       {i.Token(t, claims(map[string]any{"nbf": time.Now().Add(time.Hour).Unix()})), "none, oidc: verify token: oidc: current time"},
		"a rule for claims":   {i.Token(t, claims(map[string]any{"hd": "example.org"})), "none, oidc: error evaluating claim validation expression: validation expression"},
		"a rule for users":    {i.Token(t, claims(map[string]any{"sub": "root"})), "none, oidc: error evaluating user info validation rule: validation expression"},
		"another issuer":      {other.Token(t, claims(nil)), "none, <nil>"},
		"another key":         {other.Token(t, claims(map[string]any{"iss": i.URL})), "none, oidc: verify token: failed to verify signature"},
		"another signature":   {valid[:strings.LastIndex(valid, ".")] + other.Token(t, nil)[strings.LastIndex(other.Token(t, nil), "."):], "none"},
		"without a signature": {valid[:strings.LastIndex(valid, ".")+1], "none"},
		"not a token":         {"guessed", "none, <nil>"},
		"empty":               {"", "none, <nil>"},
	} {
		if got := file.user(t, tc.token); !strings.HasPrefix(got, tc.want) {
			t.Errorf("%s: got %s, want %s", name, got, tc.want)
		}
	}
}
