// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package authentication

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apiserver/pkg/authentication/token/tokenfile"
	"k8s.io/apiserver/pkg/authentication/user"
)

func TestTokens(t *testing.T) {
	for name, tc := range map[string]struct {
		content string
		want    map[string]*user.DefaultInfo
		err     string
	}{
		"empty":              {"", map[string]*user.DefaultInfo{}, ""},
		"a user":             {"t,alice,1", map[string]*user.DefaultInfo{"t": {Name: "alice", UID: "1"}}, ""},
		"no UID":             {"t,alice,", map[string]*user.DefaultInfo{"t": {Name: "alice"}}, ""},
		"no groups":          {"t,alice,1,", map[string]*user.DefaultInfo{"t": {Name: "alice", UID: "1"}}, ""},
		"groups":             {`t,alice,1,"a,b"`, map[string]*user.DefaultInfo{"t": {Name: "alice", UID: "1", Groups: []string{"a", "b"}}}, ""},
		"more columns":       {"t,alice,1,a,comment", map[string]*user.DefaultInfo{"t": {Name: "alice", UID: "1", Groups: []string{"a"}}}, ""},
		"lines":              {"t,alice,1\r\n\nu,bob,2\n", map[string]*user.DefaultInfo{"t": {Name: "alice", UID: "1"}, "u": {Name: "bob", UID: "2"}}, ""},
		"two tokens":         {"t,alice,1\nu,alice,1\n", map[string]*user.DefaultInfo{"t": {Name: "alice", UID: "1"}, "u": {Name: "alice", UID: "1"}}, ""},
		"too few columns":    {"t,alice,1\n\nu,bob\n", nil, "line 3 has 2 columns"},
		"no token":           {"\n,alice,1", nil, "line 2 has no token"},
		"no user":            {"t,,1", nil, "line 1 has no user name"},
		"another encoding":   {"t,alice,1\nu,j\xfcrgen,2", nil, "line 2 is not encoded as UTF-8"},
		"a space":            {"t,alice,1\nu ,bob,2", nil, "line 2 has a token with a space"},
		"a byte order mark":  {"\ufefft,alice,1", nil, "line 1 has a token with a space or a character that is not ASCII"},
		"the same token":     {"t,alice,1\nu,bob,2\nt,carol,3", nil, "line 3 has the token of line 1"},
		"a quote":            {"t,alice,1\nu,\"bob,2", nil, "line 2"},
		"a quote in a field": {"t,al\"ice,1", nil, "line 1"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := parseTokens([]byte(tc.content))
			if (err == nil) != (tc.err == "") || err != nil && (!strings.Contains(err.Error(), tc.err) || strings.Contains(err.Error(), "\n")) {
				t.Fatalf("got %v, want one line with %q", err, tc.err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("the users differ (-want +got):\n%s", diff)
			}
		})
	}
}

func TestReadTokenFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "tokens")
	if _, err := ReadTokenFile(file); err == nil || !strings.Contains(err.Error(), file) {
		t.Errorf("a file that does not exist: got %v", err)
	}
	write(t, file, "t,alice")
	if _, err := ReadTokenFile(file); err == nil || !strings.Contains(err.Error(), file+": line 1") {
		t.Errorf("a line that is too short: got %v", err)
	}
	write(t, file, "t,alice,1")
	tokens, err := ReadTokenFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for token, want := range map[string]bool{"t": true, "T": false, "": false, "t,alice,1": false} {
		response, ok, err := tokens.AuthenticateToken(t.Context(), token)
		if ok != want || err != nil || ok && response.User.GetName() != "alice" {
			t.Errorf("token %q: got %v, %v, %v", token, response, ok, err)
		}
	}
}

// FuzzTokenFile checks that a file is refused with one line, or all of its tokens are
// known, and that what is accepted means what it means to kube-apiserver, which uses
// the parser of the library.
func FuzzTokenFile(f *testing.F) {
	for _, seed := range []string{"", "t,alice,1", "t,alice,1,\"a,b\"\nu,bob,2,a", "t,alice,1\n\n", ",alice,1", "t,\"al\nice\",1,,", "a,b", "\"", "\xff,a,a"} {
		f.Add([]byte(seed))
	}
	file := filepath.Join(f.TempDir(), "tokens")
	f.Fuzz(func(t *testing.T, content []byte) {
		users, err := parseTokens(content)
		if err != nil {
			if strings.Contains(err.Error(), "\n") || len(err.Error()) > 200 {
				t.Errorf("the error is not one short line: %q", err)
			}
			return
		}
		if len(users) > len(content) {
			t.Errorf("%d users from %d bytes", len(users), len(content))
		}
		if err := os.WriteFile(file, content, 0o600); err != nil {
			t.Fatal(err)
		}
		library, err := tokenfile.NewCSV(file)
		if err != nil {
			t.Fatalf("kube-apiserver refuses it: %v", err)
		}
		for token, want := range users {
			response, ok, err := library.AuthenticateToken(t.Context(), token)
			if !ok || err != nil {
				t.Fatalf("kube-apiserver does not know the token %q: %v", token, err)
			}
			got := *response.User.(*user.DefaultInfo)
			if len(got.Groups) == 1 && got.Groups[0] == "" {
				got.Groups = nil // the column is empty
			}
			if diff := cmp.Diff(*want, got); diff != "" {
				t.Errorf("kube-apiserver takes another user from it (-want +got):\n%s", diff)
			}
		}
	})
}

// write replaces a file as a whole.
func write(t *testing.T, file, content string) {
	t.Helper()
	if err := os.WriteFile(file+".new", []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(file+".new", file); err != nil {
		t.Fatal(err)
	}
}
