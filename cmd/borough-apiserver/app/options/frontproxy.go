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

// applyFrontProxy sees to it that the host is known from its first request on.
// The library learns whom to trust from a ConfigMap once it serves already, one
// CA after the other. A host that connects in between would be told to identify
// itself by a CA that is not its own, do without, and be nobody for as long as
// the connection lasts, with everything it asks for its users.
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
			return errors.New("the CA that the host's requests are known by is not known yet")
		}
		return nil
	}))
}

type clientCA interface {
	dynamiccertificates.CAContentProvider
	dynamiccertificates.ControllerRunner
}

// unnamedCA is a CA that clients are not told of. They send whatever certificate
// they have; it is authentication that verifies it.
type unnamedCA struct{ clientCA }

// CurrentCABundleContent returns what clients are told.
func (unnamedCA) CurrentCABundleContent() []byte { return nil }
