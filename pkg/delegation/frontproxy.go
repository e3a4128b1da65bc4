// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package delegation

import (
	"net/http"
	"slices"
	"strings"

	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/authenticatorfactory"
	"k8s.io/apiserver/pkg/authentication/request/headerrequest"
	"k8s.io/apiserver/pkg/authentication/request/x509"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/borough-io/borough/pkg/authentication/x509cache"
	"github.com/borough-io/borough/pkg/authfailure"
)

// frontProxy authenticates kube-apiserver by its certificate, and takes its users from
// the headers. The authenticator of the library does the same, but verifies the
// certificate for each request.
type frontProxy struct {
	certificate authenticator.Request
	headers     authenticator.Request
}

func newFrontProxy(c *authenticatorfactory.RequestHeaderConfig) frontProxy {
	verified := authenticator.RequestFunc(func(*http.Request) (*authenticator.Response, bool, error) {
		return &authenticator.Response{}, true, nil
	})
	certificate := x509.NewDynamicCAVerifier(c.CAContentProvider.VerifyOptions, verified, c.AllowedClientNames)
	names := func() []byte { return []byte(strings.Join(c.AllowedClientNames.Value(), "\n")) }
	return frontProxy{
		certificate: x509cache.New(certificate, names, c.CAContentProvider.CurrentCABundleContent),
		headers:     headerrequest.NewDynamic(c.UsernameHeaders, c.UIDHeaders, c.GroupHeaders, c.ExtraHeaderPrefixes),
	}
}

// AuthenticateRequest implements authenticator.Request.
func (f frontProxy) AuthenticateRequest(req *http.Request) (*authenticator.Response, bool, error) {
	if _, ok, err := f.certificate.AuthenticateRequest(req); err != nil || !ok {
		return nil, false, err
	}
	response, ok, err := f.headers.AuthenticateRequest(req)
	if ok && (response.User.GetName() == user.Anonymous || slices.Contains(response.User.GetGroups(), user.AllUnauthenticated)) {
		authfailure.KeepConnection(req.Context())
	}
	return response, ok, err
}
