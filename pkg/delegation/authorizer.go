// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package delegation

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/authorization/authorizerfactory"
	"k8s.io/apiserver/pkg/authorization/path"
	"k8s.io/apiserver/pkg/authorization/union"
	authorizationclient "k8s.io/client-go/kubernetes/typed/authorization/v1"
	"k8s.io/client-go/rest"
)

// AuthorizerConfig configures the authorizer of a server behind a cluster.
type AuthorizerConfig struct {
	// Cluster is how kube-apiserver is reached. Its QPS, Burst and Timeout have no
	// effect.
	Cluster *rest.Config
	// AllowTTL and DenyTTL are how long the answers are cached.
	AllowTTL, DenyTTL time.Duration
	// Backoff is between attempts to create a review.
	Backoff wait.Backoff
	// Timeout bounds an attempt.
	Timeout time.Duration
	// AllowedGroups may do everything, without a review.
	AllowedGroups []string
	// AllowedPaths are allowed to all users, without a review.
	AllowedPaths []string
	// Broad asks first whether a user may do what is requested in every namespace,
	// and then to every object of the namespace. The answers hold for all objects,
	// so fewer reviews are needed. An authorizer that denies single objects or
	// namespaces to a user who has the right for all cannot be used with it.
	Broad bool
}

// NewAuthorizer returns an authorizer that delegates to the cluster.
func (c AuthorizerConfig) NewAuthorizer() (authorizer.Authorizer, error) {
	paths, err := path.NewAuthorizer(c.AllowedPaths)
	if err != nil {
		return nil, fmt.Errorf("create the authorizer of paths: %w", err)
	}
	cluster := rest.CopyConfig(c.Cluster)
	cluster.QPS = -1 // The bound is maxReviews.
	cluster.Timeout = c.Timeout
	attempts := newAttempts(cluster, c.Timeout)
	cluster.Wrap(func(delegate http.RoundTripper) http.RoundTripper {
		return newReviewTransport(attempts(delegate), c.Timeout)
	})
	client, err := authorizationclient.NewForConfig(cluster)
	if err != nil {
		return nil, fmt.Errorf("create the client for SubjectAccessReviews: %w", err)
	}
	delegating := authorizerfactory.DelegatingAuthorizerConfig{
		SubjectAccessReviewClient: client,
		AllowCacheTTL:             c.AllowTTL,
		DenyCacheTTL:              c.DenyTTL,
		WebhookRetryBackoff:       &c.Backoff,
	}
	reviews, err := delegating.New()
	if err != nil {
		return nil, fmt.Errorf("create the authorizer of reviews: %w", err)
	}
	reviews = withoutLargeSelectors(reviews)
	if c.Broad {
		broad, err := delegating.New()
		if err != nil {
			return nil, fmt.Errorf("create the authorizer of broad reviews: %w", err)
		}
		reviews = broadFirst(broad, reviews)
	}
	return union.New(
		union.NamedAuthorizer{AuthorizerName: "groups", Authorizer: authorizerfactory.NewPrivilegedGroups(c.AllowedGroups...)},
		union.NamedAuthorizer{AuthorizerName: "paths", Authorizer: paths},
		union.NamedAuthorizer{AuthorizerName: "anonymous", Authorizer: authorizer.AuthorizerFunc(denyAnonymous)},
		union.NamedAuthorizer{AuthorizerName: "reviews", Authorizer: noteErrors(reviews)},
	)
}

// denyAnonymous denies everything but the version to a user who is not
// authenticated: anyone who reaches the port could make the server ask for reviews.
func denyAnonymous(_ context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
	u := a.GetUser()
	if u != nil && u.GetName() != user.Anonymous || !a.IsResourceRequest() && a.GetPath() == "/version" {
		return authorizer.DecisionNoOpinion, "", nil
	}
	return authorizer.DecisionDeny, "anonymous requests are limited to health checks and the version", nil
}

// broadFirst asks for the broadest right first. Only a right that is not allowed
// is asked for more narrowly: a SubjectAccessReview without a namespace is about
// all namespaces, and one with anyName is about all objects.
//
// The two authorizers have a cache each. A user gets a right after its broad review was
// denied, and then requests just that: kube-apiserver, which has allowed the request, would
// be contradicted by a cached answer to a question that no user had asked.
func broadFirst(broad, exact authorizer.Authorizer) authorizer.Authorizer {
	return authorizer.AuthorizerFunc(func(ctx context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
		for _, broader := range broaden(a) {
			if decision, reason, err := broad.Authorize(ctx, broader); decision == authorizer.DecisionAllow || err != nil {
				return decision, reason, err
			}
		}
		return exact.Authorize(ctx, a)
	})
}

// maxSelectors is the maximum size in bytes of the selectors in a review. Answers are cached by
// their reviews.
const maxSelectors = 1 << 10

// withoutLargeSelectors leaves selectors out of a review that are larger. They only narrow what
// is requested.
func withoutLargeSelectors(reviews authorizer.Authorizer) authorizer.Authorizer {
	return authorizer.AuthorizerFunc(func(ctx context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
		size := 0
		byField, _ := a.GetFieldSelector()
		for _, r := range byField {
			size += len(r.Field) + len(r.Value)
		}
		byLabel, _ := a.GetLabelSelector()
		for _, r := range byLabel {
			size += len(r.Key())
			for _, value := range r.ValuesUnsorted() {
				size += len(value)
			}
		}
		if size > maxSelectors {
			a = unselected{a}
		}
		return reviews.Authorize(ctx, a)
	})
}

// unselected are attributes without selectors.
type unselected struct{ authorizer.Attributes }

func (unselected) GetFieldSelector() (fields.Requirements, error) { return nil, nil }
func (unselected) GetLabelSelector() (labels.Requirements, error) { return nil, nil }

// anyName is a name that no object has. A user who has a right to the object with this name
// has it to all objects. A review without a name would not do: RBAC compares names as they
// are, and rules that allow a list, which has no name, besides single objects have the name "".
const anyName = "any/name"

// broaden returns attributes that include those of the request, the broadest
// first.
func broaden(a authorizer.Attributes) []authorizer.Attributes {
	if !a.IsResourceRequest() {
		return nil
	}
	all := authorizer.AttributesRecord{
		User: a.GetUser(), Verb: a.GetVerb(),
		APIGroup: a.GetAPIGroup(), APIVersion: a.GetAPIVersion(), Resource: a.GetResource(), Subresource: a.GetSubresource(),
		ResourceRequest: true,
	}
	if a.GetName() != "" {
		all.Name = anyName
	}
	inNamespace := all
	inNamespace.Namespace = a.GetNamespace()
	// Field and label selectors only narrow a right.
	fieldSelector, _ := a.GetFieldSelector()
	labelSelector, _ := a.GetLabelSelector()
	narrow := a.GetName() != "" || len(fieldSelector) > 0 || len(labelSelector) > 0
	var broader []authorizer.Attributes
	if a.GetNamespace() != "" {
		broader = append(broader, all)
	}
	if narrow {
		broader = append(broader, inNamespace)
	}
	return broader
}
