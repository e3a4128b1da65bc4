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
)

// right is to do something to resources of a group. Namespace and name narrow it
// down.
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
		namespace: metav1.NamespaceSystem, name: authenticationConfigMap,
	}}

	webhookRights = []right{{
		verbs: listWatch, group: "admissionregistration.k8s.io",
		resources: []string{"mutatingwebhookconfigurations", "validatingwebhookconfigurations"},
	}}
	// What the server does not need when its requirement is turned off.
	requirementRights = map[string][]right{
		"priority and fairness": {
			{verbs: listWatch, group: "flowcontrol.apiserver.k8s.io", resources: []string{"flowschemas", "prioritylevelconfigurations"}},
			{verbs: []string{"patch"}, group: "flowcontrol.apiserver.k8s.io", resources: []string{"flowschemas/status"}},
		},
		"ValidatingAdmissionPolicy": {
			{verbs: listWatch, group: "admissionregistration.k8s.io", resources: []string{"validatingadmissionpolicies", "validatingadmissionpolicybindings"}},
		},
		"MutatingAdmissionPolicy": {
			{verbs: listWatch, group: "admissionregistration.k8s.io", resources: []string{"mutatingadmissionpolicies", "mutatingadmissionpolicybindings"}},
		},
	}
)

// serverRights are what the server needs beside delegator and reader.
func serverRights(d *deployment) []right {
	rights := slices.Clone(webhookRights)
	for _, r := range requirements {
		if !r.off(d) {
			rights = append(rights, requirementRights[r.what]...)
		}
	}
	if secret, _, kept, found := d.certSecret(""); kept && found {
		rights = append(rights,
			right{verbs: []string{"create"}, resources: []string{"secrets"}, namespace: secret.Namespace},
			right{verbs: []string{"get", "list", "watch", "update"}, resources: []string{"secrets"}, namespace: secret.Namespace, name: secret.Name},
			right{verbs: []string{"get", "list", "watch", "patch"}, group: apiRegistrationGroup, resources: []string{"apiservices"}, name: apiServiceName},
		)
	}
	return rights
}

func (x *examination) checkDelegator(ctx context.Context) Finding {
	return x.checkMay(ctx, delegatorRights, "may ask the host who a user is and what he may do",
		fmt.Sprintf("kubectl create clusterrolebinding %s-auth-delegator --clusterrole=system:auth-delegator --serviceaccount=%s:%s",
			x.ServiceAccount, x.Namespace, x.ServiceAccount))
}

func (x *examination) checkReader(ctx context.Context) Finding {
	return x.checkMay(ctx, readerRights, "may read by which certificate and headers to know the host",
		fmt.Sprintf("kubectl create rolebinding %s-auth-reader --namespace=%s --role=extension-apiserver-authentication-reader --serviceaccount=%s:%s",
			x.ServiceAccount, metav1.NamespaceSystem, x.Namespace, x.ServiceAccount))
}

func (x *examination) checkRights(ctx context.Context) Finding {
	return x.checkMay(ctx, serverRights(x.deployment), "may do what else the server needs",
		"a role or the binding of one is missing: "+deploy)
}

// checkMay asks the host whether the service account has all of the rights.
func (x *examination) checkMay(ctx context.Context, rights []right, may, cure string) Finding {
	user := serviceaccount.MakeUsername(x.Namespace, x.ServiceAccount)
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
					return skipped("can't ask what %s may do: %s", user, oneLine(err.Error()))
				}
				if !review.Status.Allowed {
					lacking[verb] = append(lacking[verb], resource)
				}
			}
		}
		missing = append(missing, r.describe(lacking)...)
	}
	if len(missing) > 0 {
		return fault(fmt.Sprintf("%s may not %s", user, strings.Join(missing, ", nor ")), cure)
	}
	return ok("%s %s", user, may)
}

func (r right) attributes(verb, resource string) authorizationv1.ResourceAttributes {
	resource, subresource, _ := strings.Cut(resource, "/")
	return authorizationv1.ResourceAttributes{
		Verb: verb, Group: r.group, Version: "*", Resource: resource, Subresource: subresource, Namespace: r.namespace, Name: r.name,
	}
}

// describe tells of the resources that each verb is lacking for. Verbs that lack
// for the same go together.
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
