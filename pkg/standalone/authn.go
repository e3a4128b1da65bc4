// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package standalone

import (
	"context"
	"net/http"

	apiserverapi "k8s.io/apiserver/pkg/apis/apiserver"
	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/group"
	"k8s.io/apiserver/pkg/authentication/request/anonymous"
	"k8s.io/apiserver/pkg/authentication/request/bearertoken"
	"k8s.io/apiserver/pkg/authentication/request/union"
	"k8s.io/apiserver/pkg/authentication/request/websocket"
	"k8s.io/apiserver/pkg/authentication/request/x509"
	tokenunion "k8s.io/apiserver/pkg/authentication/token/union"
	"k8s.io/apiserver/pkg/server/dynamiccertificates"

	"github.com/borough-io/borough/pkg/authentication/x509cache"
)

// Authentication is how a server authenticates users.
type Authentication struct {
	// Request authenticates requests.
	Request authenticator.Request
	// Tokens authenticates bearer tokens. It knows no token for other audiences than
	// that of the server.
	Tokens authenticator.Token
}

// NewAuthentication returns how a server authenticates users: by client certificates
// that one of the CAs has signed, by tokens, and the rest as anonymous, as far as that is
// enabled. A request with a certificate or a token that is not valid is not anonymous.
func NewAuthentication(clientCAs []dynamiccertificates.CAContentProvider, anonymousAuth apiserverapi.AnonymousAuthConfig, tokens ...authenticator.Token) Authentication {
	token := withAuthenticatedGroup(authenticator.WrapAudienceAgnosticToken(nil, tokenunion.New(tokens...)))
	var trusted []func() []byte
	for _, ca := range clientCAs {
		trusted = append(trusted, ca.CurrentCABundleContent)
	}
	certificate := group.NewAuthenticatedGroupAdder(newCertificateAuthenticator(clientCAs))
	request := union.New(
		x509cache.New(certificate, trusted...),
		bearertoken.New(token),
		websocket.NewProtocolAuthenticator(token),
	)
	if anonymousAuth.Enabled {
		request = union.NewFailOnError(request, anonymous.NewAuthenticator(anonymousAuth.Conditions))
	}
	return Authentication{request, token}
}

// withAuthenticatedGroup adds the group of authenticated users as for requests: once, and
// not to users who have the opposite group, or the name of the anonymous user.
func withAuthenticatedGroup(tokens authenticator.Token) authenticator.Token {
	return authenticator.TokenFunc(func(ctx context.Context, token string) (*authenticator.Response, bool, error) {
		return group.NewAuthenticatedGroupAdder(authenticator.RequestFunc(func(*http.Request) (*authenticator.Response, bool, error) {
			return tokens.AuthenticateToken(ctx, token)
		})).AuthenticateRequest(nil)
	})
}

// newCertificateAuthenticator returns an authenticator by certificates that one of the
// CAs has signed. It does not use a union of the CAs, which would parse all of them for
// each request.
func newCertificateAuthenticator(clientCAs []dynamiccertificates.CAContentProvider) authenticator.Request {
	var each []authenticator.Request
	for _, ca := range clientCAs {
		each = append(each, x509.NewDynamic(ca.VerifyOptions, x509.CommonNameUserConversion))
	}
	return authenticator.RequestFunc(func(req *http.Request) (response *authenticator.Response, ok bool, err error) {
		for _, certificate := range each {
			if response, ok, err = certificate.AuthenticateRequest(req); err == nil {
				return response, ok, nil // this CA has signed it
			}
		}
		return nil, false, err
	})
}
