// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"context"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	eventsv1 "k8s.io/api/events/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/registry/generic"
	genericregistry "k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/registry/rest"
	rbacclient "k8s.io/client-go/kubernetes/typed/rbac/v1"
	"k8s.io/klog/v2"

	"github.com/borough-io/borough/pkg/authorization/bootstrap"
	policy "github.com/borough-io/borough/pkg/authorization/rbac"
	"github.com/borough-io/borough/pkg/registry/authentication"
	"github.com/borough-io/borough/pkg/registry/authorization"
	"github.com/borough-io/borough/pkg/registry/create"
	"github.com/borough-io/borough/pkg/registry/event"
	"github.com/borough-io/borough/pkg/registry/lease"
	"github.com/borough-io/borough/pkg/registry/rbac"
	"github.com/borough-io/borough/pkg/registry/standard"
	"github.com/borough-io/borough/pkg/registry/tenancy/namespace"
	"github.com/borough-io/borough/pkg/registry/tenancy/namespacerequest"
	"github.com/borough-io/borough/pkg/visibility"
)

// StandaloneConfig is what a server serves that in a cluster kube-apiserver does:
// rights, and reviews of them and of users.
type StandaloneConfig struct {
	// Index is the policy.
	Index *policy.Index
	// Policy decides by Index. It is one of the authorizers of the generic
	// configuration.
	Policy *policy.Authorizer
	// Views are the Namespaces that users see. They keep Index up to date.
	Views *visibility.Views
	// Client is a client of this server with all rights.
	Client rbacclient.RbacV1Interface

	// Tokens authenticates the tokens of TokenReviews.
	Tokens authenticator.Token

	// EventTTL is how long an Event is kept after it was last written.
	EventTTL time.Duration

	// MaxNamespacesPerUser is how many Namespaces a user may have requested. 0 means no
	// limit.
	MaxNamespacesPerUser int
	// DefaultLimits creates the Namespace default with a LimitRange.
	DefaultLimits bool
}

// kubernetesStorage is the storage of the kinds of Kubernetes, which only a standalone server has.
type kubernetesStorage struct {
	rights rbac.Storage
	events *event.REST
	leases *standard.REST
}

func (s *StandaloneConfig) newStorage(scheme *runtime.Scheme, optsGetter generic.RESTOptionsGetter, authz authorizer.UnconditionalAuthorizer) (storage kubernetesStorage, err error) {
	if storage.rights, err = rbac.NewStorage(scheme, optsGetter, authz, s.Policy, s.Views.AwaitCurrent); err != nil {
		return storage, err
	}
	if storage.events, err = event.NewREST(scheme, optsGetter, s.EventTTL); err != nil {
		return storage, err
	}
	storage.leases, err = lease.NewREST(scheme, optsGetter)
	return storage, err
}

// groups returns the groups of Kubernetes.
func (s *StandaloneConfig) groups(authz authorizer.UnconditionalAuthorizer, storage kubernetesStorage) []apiGroup {
	rights := storage.rights
	return []apiGroup{
		{eventsv1.GroupName, map[string]rest.Storage{"events": storage.events}},
		{coordinationv1.GroupName, map[string]rest.Storage{"leases": storage.leases}},
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

// work returns the work of a standalone server. Requests that are in flight wait for the feed
// until drained is closed.
func (s *StandaloneConfig) work(drained <-chan struct{}) []work {
	return []work{
		{name: "rbac-index", direct: true, do: func(ctx context.Context) {
			logger := klog.FromContext(ctx)
			go func() {
				ctx := klog.NewContext(wait.ContextForChannel(drained), logger)
				if err := s.Views.Feed().Run(ctx); err != nil && ctx.Err() == nil {
					logger.Error(err, "Cannot watch the RBAC objects and the Namespaces")
				}
			}()
			_ = s.Index.AwaitSync(ctx)
		}},
		{name: "rbac-policy", do: func(ctx context.Context) {
			awaitAttempt(ctx, func(attempted func()) { bootstrap.Reconcile(ctx, s.Client, attempted) })
			awaitAttempt(ctx, func(attempted func()) { bootstrap.WriteAggregated(ctx, s.Index, s.Client, attempted) })
		}},
	}
}

// newNamespaceRequests returns the storage of namespacerequests.
func (c *ExtraConfig) newNamespaceRequests(config create.Config, namespaces *namespace.REST, roleBindings *genericregistry.Store) (rest.Storage, error) {
	return namespacerequest.NewREST(namespacerequest.Config{
		Create:     config,
		Namespaces: namespaces,
		// The store, unlike its REST, does not require that the user holds the rights.
		RoleBindings: roleBindings,
		Guards:       c.Storage,
		MaxPerUser:   c.Standalone.MaxNamespacesPerUser,
	})
}
