// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package standalone

import (
	"fmt"
	"strings"

	apiserverapi "k8s.io/apiserver/pkg/apis/apiserver"
	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/authenticatorfactory"
	"k8s.io/apiserver/pkg/server/dynamiccertificates"
	"k8s.io/utils/clock"
)

// NewAuthenticator knows a user by a client certificate that clientCA has
// signed, and nobody on the open paths.
func NewAuthenticator(clientCA dynamiccertificates.CAContentProvider, openPaths []string) (authenticator.Request, error) {
	anonymous := &apiserverapi.AnonymousAuthConfig{Enabled: true}
	for _, path := range openPaths {
		if !strings.HasSuffix(path, "*") {
			anonymous.Conditions = append(anonymous.Conditions, apiserverapi.AnonymousAuthCondition{Path: path})
		}
	}
	// Without conditions anybody would be let through everywhere.
	anonymous.Enabled = len(anonymous.Conditions) > 0
	authn, _, err := authenticatorfactory.DelegatingAuthenticatorConfig{
		ClientCertificateCAContentProvider: clientCA,
		Anonymous:                          anonymous,
	}.New()
	if err != nil {
		return nil, fmt.Errorf("make the authenticator of client certificates: %w", err)
	}
	return newVerified(authn, clientCA, clock.RealClock{}), nil
}
