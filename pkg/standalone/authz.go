// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package standalone

import (
	"fmt"

	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/authorization/authorizerfactory"
	"k8s.io/apiserver/pkg/authorization/path"
	"k8s.io/apiserver/pkg/authorization/union"

	"github.com/borough-io/borough/pkg/authorization/revocation"
	"github.com/borough-io/borough/pkg/visibility"
)

// NewAuthorizer returns an authorizer that allows everything to system:masters, the
// open paths to all users, what the policy allows, and lists and watches of the
// Namespaces that a user may get.
func NewAuthorizer(openPaths []string, policy authorizer.Authorizer) (authorizer.Authorizer, error) {
	open, err := path.NewAuthorizer(openPaths)
	if err != nil {
		return nil, fmt.Errorf("create the authorizer of open paths: %w", err)
	}
	all, err := union.New(
		union.NamedAuthorizer{AuthorizerName: "masters", Authorizer: authorizerfactory.NewPrivilegedGroups(user.SystemPrivilegedGroup)},
		union.NamedAuthorizer{AuthorizerName: "open-paths", Authorizer: open},
		union.NamedAuthorizer{AuthorizerName: "rbac", Authorizer: policy},
		union.NamedAuthorizer{AuthorizerName: "visibility", Authorizer: authorizer.AuthorizerFunc(visibility.Authorize)},
	)
	if err != nil {
		return nil, err
	}
	return revocation.NewAuthorizer(all), nil
}
