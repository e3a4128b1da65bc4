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

// NewAuthenticator returns an authenticator of users by client certificates that
// clientCA has signed. On the open paths it also accepts anonymous requests.
func NewAuthenticator(clientCA dynamiccertificates.CAContentProvider, openPaths []string) (authenticator.Request, error) {
	anonymous := &apiserverapi.AnonymousAuthConfig{Enabled: true}
	for _, path := range openPaths {
		if !strings.HasSuffix(path, "*") {
			anonymous.Conditions = append(anonymous.Conditions, apiserverapi.AnonymousAuthCondition{Path: path})
		}
	}
	// Without conditions, anonymous requests would be accepted on all paths.
	anonymous.Enabled = len(anonymous.Conditions) > 0
	authn, _, err := authenticatorfactory.DelegatingAuthenticatorConfig{
		ClientCertificateCAContentProvider: clientCA,
		Anonymous:                          anonymous,
	}.New()
	if err != nil {
		return nil, fmt.Errorf("create the authenticator of client certificates: %w", err)
	}
	return newCachingAuthenticator(authn, clientCA, clock.RealClock{}), nil
}
