// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package standalone

import (
	"context"
	"fmt"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/authorization/authorizerfactory"
	"k8s.io/apiserver/pkg/authorization/path"
	"k8s.io/apiserver/pkg/authorization/union"
	"k8s.io/component-helpers/auth/rbac/validation"

	"github.com/borough-io/borough/pkg/apis/tenancy"
)

// ControllerRules returns the rights of the namespace controller: it discovers the
// kinds, watches the Namespaces, purges their content, and finalizes them. It does
// not have the verb force on namespacepurges.
func ControllerRules() []rbacv1.PolicyRule {
	var content []string
	for _, kind := range tenancy.NamespacedKinds() {
		content = append(content, kind.Resource)
	}
	return []rbacv1.PolicyRule{
		{NonResourceURLs: []string{"/api", "/api/*", "/apis", "/apis/*", "/version"}, Verbs: []string{"get"}},
		{APIGroups: []string{tenancy.GroupName}, Resources: []string{"namespaces"}, Verbs: []string{"get", "list", "watch", "delete"}},
		{APIGroups: []string{tenancy.GroupName}, Resources: []string{"namespaces/status", "namespaces/finalize"}, Verbs: []string{"update"}},
		{APIGroups: []string{tenancy.GroupName}, Resources: []string{"namespacepurges"}, Verbs: []string{"create"}},
		{APIGroups: []string{tenancy.GroupName}, Resources: content, Verbs: []string{"list", "watch", "delete"}},
	}
}

// NewAuthorizer returns the built-in policy. It allows everything to system:masters,
// ControllerRules to the controller, and the open paths to all users. It denies
// everything else.
func NewAuthorizer(openPaths []string) (authorizer.Authorizer, error) {
	open, err := path.NewAuthorizer(openPaths)
	if err != nil {
		return nil, fmt.Errorf("create the authorizer of open paths: %w", err)
	}
	return union.New(
		union.NamedAuthorizer{AuthorizerName: "masters", Authorizer: authorizerfactory.NewPrivilegedGroups(user.SystemPrivilegedGroup)},
		union.NamedAuthorizer{AuthorizerName: "open-paths", Authorizer: open},
		union.NamedAuthorizer{AuthorizerName: "controller", Authorizer: allow(ControllerUser, ControllerRules())},
	)
}

// allow returns an authorizer that allows one user what the rules cover.
func allow(user string, rules []rbacv1.PolicyRule) authorizer.Authorizer {
	return authorizer.AuthorizerFunc(func(_ context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
		if a.GetUser() == nil || a.GetUser().GetName() != user {
			return authorizer.DecisionNoOpinion, "", nil
		}
		if ok, _ := validation.Covers(rules, []rbacv1.PolicyRule{asRule(a)}); ok {
			return authorizer.DecisionAllow, "", nil
		}
		return authorizer.DecisionNoOpinion, "", nil
	})
}

// asRule returns the rule that allows exactly this request.
func asRule(a authorizer.Attributes) rbacv1.PolicyRule {
	rule := rbacv1.PolicyRule{Verbs: []string{a.GetVerb()}}
	if !a.IsResourceRequest() {
		rule.NonResourceURLs = []string{a.GetPath()}
		return rule
	}
	resource := a.GetResource()
	if a.GetSubresource() != "" {
		resource += "/" + a.GetSubresource()
	}
	rule.APIGroups = []string{a.GetAPIGroup()}
	rule.Resources = []string{resource}
	if a.GetName() != "" {
		rule.ResourceNames = []string{a.GetName()}
	}
	return rule
}
