// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package storm

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/borough-io/borough/pkg/apis/kubernetes"
	"github.com/borough-io/borough/pkg/apis/tenancy"
)

// kinds are the namespaced kinds of a standalone server.
var kinds = slices.Concat(tenancy.NamespacedKinds(), kubernetes.NamespacedKinds())

// The resources of the requests.
var (
	namespaceResource = tenancy.Resource("namespaces")
	pods              = tenancy.Resource("pods")
	corePods          = corev1.Resource("pods")
	events            = corev1.Resource("events")
	leases            = coordinationv1.Resource("leases")
	limitRanges       = tenancy.Resource("limitranges")
	quotas            = tenancy.Resource("resourcequotas")
	roles             = rbacv1.Resource("roles")
	roleBindings      = rbacv1.Resource("rolebindings")
)

const (
	// absent is a name that is never created.
	absent = "absent"
	// sharedPrefix is the prefix of the names that the clients share.
	sharedPrefix = "shared-"
	// quotaPrefix is the prefix of the names of quotas.
	quotaPrefix = "quota-"
)

// deletable reports whether clients delete objects with a name. No other may disappear
// from a Namespace that is not being deleted.
func deletable(name string) bool {
	return slices.ContainsFunc([]string{sharedPrefix, quotaPrefix, rightPrefix}, func(prefix string) bool { return strings.HasPrefix(name, prefix) })
}

// effect is what a request does if it succeeds.
type effect int

const (
	creates effect = iota // or changes
	changes
	deletes
)

// path is a way to write.
type path struct {
	name     string
	resource schema.GroupResource
	effect   effect
	request  func(client rest.Interface, at target) *rest.Request
}

// target is the object of a request.
type target struct {
	namespace, name string
	label           string // a label value, so that a write changes something
}

// paths are the ways to write and to delete content, and to relabel a Namespace.
var paths = []path{
	{"POST Pod", pods, creates, func(client rest.Interface, at target) *rest.Request {
		return post(client, at, pods, pod(at, "name"))
	}},
	{"POST Pod, generateName", pods, creates, func(client rest.Interface, at target) *rest.Request {
		return post(client, at, pods, pod(at, "generateName"))
	}},
	{"apply Pod", pods, creates, func(client rest.Interface, at target) *rest.Request {
		return apply(client, at, pods, pod(at, "name"))
	}},
	{"POST Pod in the core group", pods, creates, func(client rest.Interface, at target) *rest.Request {
		return post(client, at, corePods, strings.Replace(pod(at, "name"), tenancy.GroupName+"/v1", "v1", 1))
	}},
	{"apply Pod in the core group", pods, creates, func(client rest.Interface, at target) *rest.Request {
		return apply(client, at, corePods, strings.Replace(pod(at, "name"), tenancy.GroupName+"/v1", "v1", 1))
	}},
	{"POST Event", events, creates, func(client rest.Interface, at target) *rest.Request {
		return post(client, at, events, fmt.Sprintf(`{"metadata": {"name": %q, "labels": {"storm": %q}}, "involvedObject": {"namespace": %q}}`, at.name, at.label, at.namespace))
	}},
	{"POST Lease", leases, creates, func(client rest.Interface, at target) *rest.Request {
		return post(client, at, leases, manifestOf(leases.Group, "Lease", "name", at, `"spec": {}`))
	}},
	{"apply Lease", leases, creates, func(client rest.Interface, at target) *rest.Request {
		return apply(client, at, leases, manifestOf(leases.Group, "Lease", "name", at, `"spec": {}`))
	}},
	{"POST LimitRange", limitRanges, creates, func(client rest.Interface, at target) *rest.Request {
		return post(client, at, limitRanges, limitRange(at))
	}},
	{"PUT LimitRange", limitRanges, creates, func(client rest.Interface, at target) *rest.Request {
		return put(client, at, limitRanges, limitRange(at))
	}},
	{"apply LimitRange", limitRanges, creates, func(client rest.Interface, at target) *rest.Request {
		return apply(client, at, limitRanges, limitRange(at))
	}},
	{"POST ResourceQuota", quotas, creates, func(client rest.Interface, at target) *rest.Request {
		return post(client, at, quotas, quota(at))
	}},
	{"apply ResourceQuota", quotas, creates, func(client rest.Interface, at target) *rest.Request {
		return apply(client, quotaTarget(at), quotas, quota(at))
	}},
	{"POST Role", roles, creates, func(client rest.Interface, at target) *rest.Request {
		return post(client, at, roles, role(at, readContent))
	}},
	{"PUT Role", roles, creates, func(client rest.Interface, at target) *rest.Request {
		return put(client, at, roles, role(at, readContent))
	}},
	{"POST RoleBinding", roleBindings, creates, func(client rest.Interface, at target) *rest.Request {
		return post(client, at, roleBindings, roleBinding(at, "storm", "user"))
	}},
	{"apply RoleBinding", roleBindings, creates, func(client rest.Interface, at target) *rest.Request {
		return apply(client, at, roleBindings, roleBinding(at, "storm", "user"))
	}},

	{"POST Pod binding", pods, changes, func(client rest.Interface, at target) *rest.Request {
		body := manifest("Binding", "name", at, `"target": {"kind": "Node", "name": "node"}`)
		return withJSON(of(client.Post(), pods, at.namespace).Name(at.name).SubResource("binding"), body)
	}},
	{"apply Pod status", pods, changes, func(client rest.Interface, at target) *rest.Request {
		body := manifest("Pod", "name", at, fmt.Sprintf(`"status": {"message": %q}`, at.label))
		return apply(client, at, pods, body).SubResource("status")
	}},
	{"complete Pod", pods, changes, func(client rest.Interface, at target) *rest.Request {
		return of(client.Patch(types.MergePatchType), pods, at.namespace).Name(at.name).SubResource("status").
			Body([]byte(`{"status": {"phase": "Succeeded"}}`))
	}},
	{"apply Pod resize", pods, changes, func(client rest.Interface, at target) *rest.Request {
		body := manifest("Pod", "name", at, fmt.Sprintf(`"spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": "%dm"}}}]}`, 1+lastDigit(at.label)))
		return apply(client, at, pods, body).SubResource("resize")
	}},
	{"set deadline of Pod", pods, changes, func(client rest.Interface, at target) *rest.Request {
		return of(client.Patch(types.MergePatchType), pods, at.namespace).Name(at.name).
			Body([]byte(`{"spec": {"activeDeadlineSeconds": 1000}}`))
	}},
	{"apply Pod ephemeralcontainers", pods, changes, func(client rest.Interface, at target) *rest.Request {
		body := manifest("Pod", "name", at, `"spec": {"ephemeralContainers": [{"name": "e", "image": "image"}]}`)
		return apply(client, at, pods, body).SubResource("ephemeralcontainers")
	}},

	{"DELETE Pod", pods, deletes, func(client rest.Interface, at target) *rest.Request {
		return of(client.Delete(), pods, at.namespace).Name(at.name)
	}},
	{"DELETE collection of Pods", pods, deletes, func(client rest.Interface, at target) *rest.Request {
		return of(client.Delete(), pods, at.namespace).Param("labelSelector", "name="+at.name)
	}},
	{"DELETE Lease", leases, deletes, func(client rest.Interface, at target) *rest.Request {
		return of(client.Delete(), leases, at.namespace).Name(at.name)
	}},
	{"DELETE LimitRange", limitRanges, deletes, func(client rest.Interface, at target) *rest.Request {
		return of(client.Delete(), limitRanges, at.namespace).Name(at.name)
	}},
	{"DELETE ResourceQuota", quotas, deletes, func(client rest.Interface, at target) *rest.Request {
		return of(client.Delete(), quotas, at.namespace).Name(quotaTarget(at).name)
	}},

	{"relabel Namespace", namespaceResource, changes, func(client rest.Interface, at target) *rest.Request {
		return client.Patch(types.MergePatchType).Resource("namespaces").Name(at.namespace).
			Body(fmt.Appendf(nil, `{"metadata": {"labels": {"storm": %q}}}`, at.label))
	}},
}

// choose chooses a path and a target.
func choose(r *rand.Rand, namespaces []string) (path, target) {
	at := target{
		namespace: namespaces[r.IntN(len(namespaces))],
		name:      fmt.Sprint(sharedPrefix, r.IntN(2)),
		label:     fmt.Sprint(r.Uint32()),
	}
	p := paths[r.IntN(len(paths))]
	switch {
	case p.effect == creates && r.IntN(2) > 0:
		at.name = "own-" + at.label
	case p.effect != creates && r.IntN(8) == 0:
		at.name = absent
	}
	return p, at
}

// of addresses a request to a resource in a namespace, or in all.
func of(request *rest.Request, resource schema.GroupResource, namespace string) *rest.Request {
	path := []string{"/apis", resource.Group, "v1"}
	if resource.Group == "" {
		path = []string{"/api/v1"}
	}
	return request.AbsPath(path...).Namespace(namespace).Resource(resource.Resource)
}

func post(client rest.Interface, at target, resource schema.GroupResource, body string) *rest.Request {
	return withJSON(of(client.Post(), resource, at.namespace), body)
}

func put(client rest.Interface, at target, resource schema.GroupResource, body string) *rest.Request {
	return withJSON(of(client.Put(), resource, at.namespace).Name(at.name), body)
}

func withJSON(request *rest.Request, body string) *rest.Request {
	return request.SetHeader("Content-Type", "application/json").Body([]byte(body))
}

func apply(client rest.Interface, at target, resource schema.GroupResource, body string) *rest.Request {
	return of(client.Patch(types.ApplyYAMLPatchType), resource, at.namespace).Name(at.name).
		Param("fieldManager", "storm").Param("force", "true").Body([]byte(body))
}

// pod returns a Pod without a grace period. Its request depends on its name, so that
// it can be applied again.
func pod(at target, nameField string) string {
	return manifest("Pod", nameField, at, fmt.Sprintf(`"spec": {
		"terminationGracePeriodSeconds": 0,
		"containers": [{"name": "c", "image": "image", "resources": {"requests": {"cpu": "%dm"}}}]
	}`, 1+lastDigit(at.name)))
}

// lastDigit returns the last digit of a name or a label.
func lastDigit(s string) int { return int(s[len(s)-1] - '0') }

func limitRange(at target) string {
	return manifest("LimitRange", "name", at, `"spec": {"limits": [{"type": "Container", "default": {"cpu": "1"}}]}`)
}

// quotaTarget returns one of the quotas in a Namespace.
func quotaTarget(at target) target {
	at.name = fmt.Sprint(quotaPrefix, lastDigit(at.label)%4)
	return at
}

// quota returns a ResourceQuota with limits that differ. Most rounds reach some. Two of
// the four have a scope.
func quota(at target) string {
	at = quotaTarget(at)
	limit := 5 + 3*int(at.label[0]-'0')
	ofPods := fmt.Sprintf(`"pods": "%d", "requests.cpu": "%dm"`, limit, 4*limit)
	switch at.name {
	case quotaPrefix + "2":
		return manifest("ResourceQuota", "name", at, fmt.Sprintf(`"spec": {"scopes": ["Terminating"], "hard": {%s}}`, ofPods))
	case quotaPrefix + "3":
		return manifest("ResourceQuota", "name", at, fmt.Sprintf(`"spec": {"scopes": ["NotTerminating"], "hard": {%s}}`, ofPods))
	}
	return manifest("ResourceQuota", "name", at, fmt.Sprintf(`"spec": {"hard": {%s, "count/pods": "%d", "count/limitranges": "%d", "count/leases.coordination.k8s.io": "%d"}}`,
		ofPods, 2*limit, limit, limit))
}

// readContent is a rule that allows to read LimitRanges.
const readContent = `{"apiGroups": ["tenancy.borough.io"], "resources": ["limitranges"], "verbs": ["get"]}`

// role returns a Role with rules, in JSON.
func role(at target, rules string) string {
	return manifestOf(rbacv1.GroupName, "Role", "name", at, fmt.Sprintf(`"rules": [%s]`, rules))
}

// roleBinding returns a RoleBinding of a Role to a user, or without subjects.
func roleBinding(at target, role, user string) string {
	subjects := ""
	if user != "" {
		subjects = fmt.Sprintf(`{"apiGroup": %q, "kind": "User", "name": %q}`, rbacv1.GroupName, user)
	}
	return manifestOf(rbacv1.GroupName, "RoleBinding", "name", at, fmt.Sprintf(`"subjects": [%s], "roleRef": {"apiGroup": %q, "kind": "Role", "name": %q}`,
		subjects, rbacv1.GroupName, role))
}

func manifest(kind, nameField string, at target, rest string) string {
	return manifestOf(tenancy.GroupName, kind, nameField, at, rest)
}

func manifestOf(group, kind, nameField string, at target, rest string) string {
	return fmt.Sprintf(`{"apiVersion": "%s/v1", "kind": %q, "metadata": {%q: %[4]q, "labels": {"name": %[4]q, "storm": %q}}, %s}`,
		group, kind, nameField, at.name, at.label, rest)
}
