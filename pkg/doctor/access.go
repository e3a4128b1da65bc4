// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"context"
	"fmt"
	"slices"
	"strings"

	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authentication/serviceaccount"

	"github.com/borough-io/borough/pkg/delegation"
)

// right is a permission for resources of an API group, restricted by namespace and
// name if they are set.
type right struct {
	verbs           []string
	group           string
	resources       []string
	namespace, name string
}

var (
	listWatch = []string{"list", "watch"}

	delegatorRights = []right{
		{verbs: []string{"create"}, group: "authentication.k8s.io", resources: []string{"tokenreviews"}},
		{verbs: []string{"create"}, group: "authorization.k8s.io", resources: []string{"subjectaccessreviews"}},
	}
	readerRights = []right{{
		verbs: []string{"get", "list", "watch"}, resources: []string{"configmaps"},
		namespace: delegation.ConfigMapNamespace, name: delegation.ConfigMapName,
	}}

	webhookRights = []right{{
		verbs: listWatch, group: "admissionregistration.k8s.io",
		resources: []string{"mutatingwebhookconfigurations", "validatingwebhookconfigurations"},
	}}
	projectRights = []right{{
		verbs: []string{"get", "list", "watch"}, group: "rbac.authorization.k8s.io",
		resources: []string{"clusterrolebindings", "clusterroles", "rolebindings", "roles"},
	}}
)

// serverRights returns the rights that the server needs in addition to those of
// delegator and reader.
func serverRights(d *deployment) []right {
	rights := slices.Clone(webhookRights)
	for _, r := range requirements {
		if !r.off(d) {
			rights = append(rights, right{verbs: listWatch, group: r.group, resources: r.resources})
			rights = append(rights, r.more...)
		}
	}
	if d.boolFlag("serve-projects", false) {
		rights = append(rights, projectRights...)
	}
	if secret, _, managed, found := d.certSecret(""); managed && found {
		rights = append(rights,
			right{verbs: []string{"get", "list", "watch", "update"}, resources: []string{"secrets"}, namespace: secret.Namespace, name: secret.Name},
			right{verbs: []string{"get", "list", "watch", "patch"}, group: apiRegistrationGroup, resources: []string{"apiservices"}, name: apiServiceName},
		)
	}
	return rights
}

func (x *examination) checkDelegator(ctx context.Context) Finding {
	return x.checkAccess(ctx, x.ServiceAccount, delegatorRights, "can delegate authentication and authorization to kube-apiserver",
		fmt.Sprintf("kubectl create clusterrolebinding %s-auth-delegator --clusterrole=system:auth-delegator --serviceaccount=%s:%s",
			x.ServiceAccount, x.Namespace, x.ServiceAccount))
}

func (x *examination) checkReader(ctx context.Context) Finding {
	return x.checkAccess(ctx, x.ServiceAccount, readerRights, "can read how to authenticate kube-apiserver",
		fmt.Sprintf("kubectl create rolebinding %s-auth-reader --namespace=%s --role=extension-apiserver-authentication-reader --serviceaccount=%s:%s",
			x.ServiceAccount, metav1.NamespaceSystem, x.Namespace, x.ServiceAccount))
}

func (x *examination) checkRights(ctx context.Context) Finding {
	return x.checkAccess(ctx, x.ServiceAccount, serverRights(x.deployment), "has the other rights that the server needs",
		"a role or a binding is missing: "+deploy)
}

// checkAccess checks, by SubjectAccessReviews, that a service account has the
// rights. If it does, the message is success.
func (x *examination) checkAccess(ctx context.Context, serviceAccount string, rights []right, success, fix string) Finding {
	user := serviceaccount.MakeUsername(x.Namespace, serviceAccount)
	groups := append(serviceaccount.MakeGroupNames(x.Namespace), "system:authenticated")
	var missing []string
	for _, r := range rights {
		lacking := map[string][]string{} // resources by verb
		for _, verb := range r.verbs {
			for _, resource := range r.resources {
				attributes := r.attributes(verb, resource)
				review, err := x.client.AuthorizationV1().SubjectAccessReviews().Create(ctx, &authorizationv1.SubjectAccessReview{
					Spec: authorizationv1.SubjectAccessReviewSpec{User: user, Groups: groups, ResourceAttributes: &attributes},
				}, metav1.CreateOptions{})
				if err != nil {
					return skipped("cannot check the rights of %s: %s", user, oneLine(err.Error()))
				}
				if !review.Status.Allowed {
					lacking[verb] = append(lacking[verb], resource)
				}
			}
		}
		missing = append(missing, r.describe(lacking)...)
	}
	if len(missing) > 0 {
		return fault(fmt.Sprintf("%s cannot %s", user, strings.Join(missing, ", or ")), fix)
	}
	return ok("%s %s", user, success)
}

func (r right) attributes(verb, resource string) authorizationv1.ResourceAttributes {
	resource, subresource, _ := strings.Cut(resource, "/")
	return authorizationv1.ResourceAttributes{
		Verb: verb, Group: r.group, Version: "*", Resource: resource, Subresource: subresource, Namespace: r.namespace, Name: r.name,
	}
}

// describe returns texts for the resources that each verb is lacking for. It
// combines verbs with the same resources.
func (r right) describe(lacking map[string][]string) []string {
	var texts []string
	for i, verb := range r.verbs {
		resources := lacking[verb]
		same := func(other string) bool { return slices.Equal(lacking[other], resources) }
		if len(resources) == 0 || slices.ContainsFunc(r.verbs[:i], same) {
			continue
		}
		verbs := slices.DeleteFunc(slices.Clone(r.verbs), func(other string) bool { return !same(other) })
		text := strings.Join(verbs, "/") + " " + strings.Join(resources, ", ")
		if r.name != "" {
			text += " " + r.name
		}
		if r.group != "" {
			text += " of " + r.group
		}
		if r.namespace != "" {
			text += " in " + r.namespace
		}
		texts = append(texts, text)
	}
	return texts
}
