// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package standalone

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
	"time"

	apiserverapi "k8s.io/apiserver/pkg/apis/apiserver"
	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/server/dynamiccertificates"
	certutil "k8s.io/client-go/util/cert"

	"github.com/borough-io/borough/pkg/certificates"
)

// TestAuthentication checks which user each combination of credentials is.
func TestAuthentication(t *testing.T) {
	newCA := func() (certificates.Pair, dynamiccertificates.CAContentProvider) {
		pair, err := certificates.NewCA("ca", time.Now(), time.Now().Add(time.Hour))
		if err != nil {
			t.Fatal(err)
		}
		bundle, err := certutil.EncodeCertificates(pair.Cert)
		if err != nil {
			t.Fatal(err)
		}
		provider, err := dynamiccertificates.NewStaticCAContent("ca", bundle)
		if err != nil {
			t.Fatal(err)
		}
		return pair, provider
	}
	ca, provider := newCA()
	second, secondProvider := newCA()
	other, _ := newCA()
	providers := []dynamiccertificates.CAContentProvider{provider, secondProvider}
	issue := func(ca certificates.Pair, name string, groups ...string) *x509.Certificate {
		pair, err := ca.Issue(certificates.Client(pkix.Name{CommonName: name, Organization: groups}), time.Now(), time.Now().Add(time.Hour))
		if err != nil {
			t.Fatal(err)
		}
		return pair.Cert
	}
	alice, carol, foreign, nameless := issue(ca, "alice", "a"), issue(second, "carol"), issue(other, "alice"), issue(second, "")
	tokens := authenticator.TokenFunc(func(_ context.Context, token string) (*authenticator.Response, bool, error) {
		switch token {
		case "bob":
			return &authenticator.Response{User: &user.DefaultInfo{Name: "bob", Groups: []string{"b"}}}, true, nil
		case "anonymous":
			return &authenticator.Response{User: &user.DefaultInfo{Name: user.Anonymous}}, true, nil
		case "authenticated":
			return &authenticator.Response{User: &user.DefaultInfo{Name: "bob", Groups: []string{user.AllAuthenticated}}}, true, nil
		case "unauthenticated":
			return &authenticator.Response{User: &user.DefaultInfo{Name: "bob", Groups: []string{user.AllUnauthenticated}}}, true, nil
		case "broken":
			return nil, false, errors.New("broken")
		}
		return nil, false, nil
	})
	const all, livez = "all", "/livez"
	for name, tc := range map[string]struct {
		cert      *x509.Certificate
		token     string
		anonymous string // "", all or a path
		want      []string
	}{
		"a certificate":                         {alice, "", all, []string{"alice", "a", user.AllAuthenticated}},
		"a certificate, no anonymous":           {alice, "", "", []string{"alice", "a", user.AllAuthenticated}},
		"a certificate of the second CA":        {carol, "", all, []string{"carol", user.AllAuthenticated}},
		"a certificate of another CA":           {foreign, "", all, nil},
		"a certificate without a name":          {nameless, "", all, []string{user.Anonymous, user.AllUnauthenticated}},
		"a token":                               {nil, "bob", all, []string{"bob", "b", user.AllAuthenticated}},
		"a token of the anonymous user":         {nil, "anonymous", all, []string{user.Anonymous}},
		"a token with the group":                {nil, "authenticated", all, []string{"bob", user.AllAuthenticated}},
		"a token with the opposite group":       {nil, "unauthenticated", all, []string{"bob", user.AllUnauthenticated}},
		"a wrong token":                         {nil, "wrong", all, nil},
		"a token that fails":                    {nil, "broken", all, nil},
		"both":                                  {alice, "bob", all, []string{"alice", "a", user.AllAuthenticated}},
		"a certificate and a wrong token":       {alice, "wrong", all, []string{"alice", "a", user.AllAuthenticated}},
		"a foreign certificate and a token":     {foreign, "bob", all, []string{"bob", "b", user.AllAuthenticated}},
		"nothing":                               {nil, "", all, []string{user.Anonymous, user.AllUnauthenticated}},
		"nothing, no anonymous":                 {nil, "", "", nil},
		"nothing, anonymous on this path":       {nil, "", livez, []string{user.Anonymous, user.AllUnauthenticated}},
		"nothing, anonymous on another":         {nil, "", "/readyz", nil},
		"a wrong token, anonymous on this path": {nil, "wrong", livez, nil},
	} {
		t.Run(name, func(t *testing.T) {
			anonymous := apiserverapi.AnonymousAuthConfig{Enabled: tc.anonymous != ""}
			if tc.anonymous != "" && tc.anonymous != all {
				anonymous.Conditions = []apiserverapi.AnonymousAuthCondition{{Path: tc.anonymous}}
			}
			authn := NewAuthentication(providers, anonymous, tokens)
			for _, websocket := range []bool{false, true} {
				request := httptest.NewRequest(http.MethodGet, livez, nil)
				request.TLS = &tls.ConnectionState{}
				if tc.cert != nil {
					request.TLS.PeerCertificates = []*x509.Certificate{tc.cert}
				}
				if tc.token != "" && !websocket {
					request.Header.Set("Authorization", "Bearer "+tc.token)
				}
				if websocket {
					request.Header.Set("Connection", "Upgrade")
					request.Header.Set("Upgrade", "websocket")
					if tc.token != "" {
						request.Header.Set("Sec-WebSocket-Protocol", "base64url.bearer.authorization.k8s.io."+base64.RawURLEncoding.EncodeToString([]byte(tc.token))+", v4.channel.k8s.io")
					}
				}
				for range 2 { // the second may come from a cache
					response, ok, _ := authn.Request.AuthenticateRequest(request.Clone(t.Context()))
					var got []string
					if ok {
						got = append([]string{response.User.GetName()}, response.User.GetGroups()...)
					}
					if !slices.Equal(got, tc.want) {
						t.Errorf("websocket %v: the user and groups are %q, want %q", websocket, got, tc.want)
					}
				}
			}
		})
	}

	authn := NewAuthentication(providers, apiserverapi.AnonymousAuthConfig{}, tokens)
	response, ok, err := authn.Tokens.AuthenticateToken(t.Context(), "bob")
	if !ok || err != nil || !slices.Equal(response.User.GetGroups(), []string{"b", user.AllAuthenticated}) {
		t.Errorf("the token of bob: got %+v, %v, %v", response, ok, err)
	}
	if _, ok, err := authn.Tokens.AuthenticateToken(authenticator.WithAudiences(t.Context(), authenticator.Audiences{"x"}), "bob"); ok || err != nil {
		t.Errorf("the token of bob for another audience: got %v, %v", ok, err)
	}
	if _, ok, err := NewAuthentication(providers, apiserverapi.AnonymousAuthConfig{}).Tokens.AuthenticateToken(t.Context(), "bob"); ok || err != nil {
		t.Errorf("without tokens: got %v, %v", ok, err)
	}
}
