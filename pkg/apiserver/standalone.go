// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"context"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/registry/rest"
	rbacclient "k8s.io/client-go/kubernetes/typed/rbac/v1"

	"github.com/borough-io/borough/pkg/authorization/bootstrap"
	policy "github.com/borough-io/borough/pkg/authorization/rbac"
	"github.com/borough-io/borough/pkg/registry/authentication"
	"github.com/borough-io/borough/pkg/registry/authorization"
	"github.com/borough-io/borough/pkg/registry/rbac"
)

// StandaloneConfig is what a server serves that in a cluster kube-apiserver does:
// rights, and reviews of them and of users.
type StandaloneConfig struct {
	// Index is the policy, which the server keeps up to date.
	Index *policy.Index
	// Policy decides by Index. It is one of the authorizers of the generic
	// configuration.
	Policy *policy.Authorizer
	// Client is a client of this server with all rights.
	Client rbacclient.RbacV1Interface

	// Tokens authenticates the tokens of TokenReviews.
	Tokens authenticator.Token
}

// groups returns the groups of Kubernetes.
func (s *StandaloneConfig) groups(authz authorizer.UnconditionalAuthorizer, rights rbac.Storage) []apiGroup {
	return []apiGroup{
		{rbacv1.GroupName, map[string]rest.Storage{
			"roles":               rights.Roles,
			"rolebindings":        rights.RoleBindings,
			"clusterroles":        rights.ClusterRoles,
			"clusterrolebindings": rights.ClusterRoleBindings,
		}},
		{authorizationv1.GroupName, authorization.NewStorage(authz, s.Policy)},
		{authenticationv1.GroupName, authentication.NewStorage(s.Tokens)},
	}
}

func (s *StandaloneConfig) work() []work {
	return []work{
		{"rbac-index", func(ctx context.Context) {
			go s.Index.Run(ctx, s.Client)
			_ = s.Index.AwaitSync(ctx)
		}},
		{"rbac-policy", func(ctx context.Context) {
			awaitAttempt(ctx, func(attempted func()) { bootstrap.Reconcile(ctx, s.Client, attempted) })
			awaitAttempt(ctx, func(attempted func()) { bootstrap.WriteAggregated(ctx, s.Index, s.Client, attempted) })
		}},
	}
}
