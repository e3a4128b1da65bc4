// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package standalone

import (
	apiserverapi "k8s.io/apiserver/pkg/apis/apiserver"
	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/group"
	"k8s.io/apiserver/pkg/authentication/request/anonymous"
	"k8s.io/apiserver/pkg/authentication/request/bearertoken"
	"k8s.io/apiserver/pkg/authentication/request/union"
	"k8s.io/apiserver/pkg/authentication/request/websocket"
	"k8s.io/apiserver/pkg/authentication/request/x509"
	tokenunion "k8s.io/apiserver/pkg/authentication/token/union"
	"k8s.io/apiserver/pkg/authentication/user"
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
// that clientCA has signed, by tokens, and the rest as anonymous, as far as that is
// enabled. A request with a certificate or a token that is not valid is not anonymous.
func NewAuthentication(clientCA dynamiccertificates.CAContentProvider, anonymousAuth apiserverapi.AnonymousAuthConfig, tokens ...authenticator.Token) Authentication {
	token := authenticator.WrapAudienceAgnosticToken(nil, tokenunion.New(tokens...))
	token = group.NewTokenGroupAdder(token, []string{user.AllAuthenticated})
	certificate := group.NewAuthenticatedGroupAdder(x509.NewDynamic(clientCA.VerifyOptions, x509.CommonNameUserConversion))
	request := union.New(
		x509cache.New(certificate, clientCA.CurrentCABundleContent),
		bearertoken.New(token),
		websocket.NewProtocolAuthenticator(token),
	)
	if anonymousAuth.Enabled {
		request = union.NewFailOnError(request, anonymous.NewAuthenticator(anonymousAuth.Conditions))
	}
	return Authentication{request, token}
}
