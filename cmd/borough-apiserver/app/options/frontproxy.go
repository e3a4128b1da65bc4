// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package options

import (
	"errors"
	"net/http"

	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/server/dynamiccertificates"
	"k8s.io/apiserver/pkg/server/healthz"
)

// applyFrontProxy ensures that the server authenticates kube-apiserver from its
// first request. The library reads the client CAs from a ConfigMap, one after the
// other, while the server already serves. If kube-apiserver connected in between,
// the TLS handshake would offer only CAs that did not sign its certificate:
// kube-apiserver would send none, and all requests on that connection would be
// anonymous.
func applyFrontProxy(generic *genericapiserver.RecommendedConfig) {
	if ca, ok := generic.SecureServing.ClientCA.(clientCA); ok {
		generic.SecureServing.ClientCA = unnamedCA{ca}
	}
	if generic.Authentication.RequestHeaderConfig == nil {
		return
	}
	ca := generic.Authentication.RequestHeaderConfig.CAContentProvider
	generic.AddReadyzChecks(healthz.NamedCheck("front-proxy-ca", func(*http.Request) error {
		if len(ca.CurrentCABundleContent()) == 0 {
			return errors.New("the CA that authenticates kube-apiserver is not loaded yet")
		}
		return nil
	}))
}

type clientCA interface {
	dynamiccertificates.CAContentProvider
	dynamiccertificates.ControllerRunner
}

// unnamedCA is a CA that the TLS handshake does not name to clients, so that they
// send the certificate that they have. Authentication verifies it.
type unnamedCA struct{ clientCA }

// CurrentCABundleContent returns the CAs to name to clients: none.
func (unnamedCA) CurrentCABundleContent() []byte { return nil }
