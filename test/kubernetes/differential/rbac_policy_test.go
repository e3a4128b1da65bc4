// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package differential

import (
	"fmt"
	"math/rand/v2"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
)

// The words of policies and of requests are the same few, so that many requests match
// a rule, and many others almost do. Rules may name resources that do not exist.
var (
	verbs        = []any{"get", "list", "create", "update", "delete", "use", "*"}
	groups       = []any{"", "apps", "example.com", "*"}
	resources    = []any{"pods", "pods/log", "pods/status", "deployments", "deployments/scale", "widgets", "widgets/status", "widgets/a/b", "*", "*/status", "*/scale", "*/*", "pods/*", "pods/"}
	objectNames  = []any{"a", "b", "c", "*", "a/b", ""}
	urls         = []any{"/metrics", "/metrics/*", "/logs", "/logs/", "/logs/*", "/logs/**", "/logs/*/x", "/lo*", "/*", "*", "", "logs"}
	requestPaths = []any{"/metrics", "/metrics/", "/metrics/a", "/logs", "/logs/", "/logs/a", "/logs/a/x", "/logs/*", "/logs/**", "/lo", "/", "*", "", "logs"}
)

// Bindings in the Namespace may have subjects that all scenarios share.
var (
	ownUsers     = []string{"$ns-alice", "$ns-bob", "system:serviceaccount:$ns:robot", "system:serviceaccount:$ns-other:robot"}
	ownGroups    = []string{"$ns-devs", "$ns-ops", "system:serviceaccounts:$ns"}
	sharedUsers  = []string{"system:anonymous", "system:serviceaccount:default:robot", ""}
	sharedGroups = []string{"system:authenticated", "system:unauthenticated", "system:serviceaccounts", "system:masters"}
)

// policies makes random objects of the four kinds.
type policies struct{ *rand.Rand }

// some returns up to n of the values, at least one.
func (p policies) some(n int, values []any) []any {
	var chosen []any
	for range 1 + p.IntN(n) {
		chosen = append(chosen, pick(p.Rand, values))
	}
	return chosen
}

func (p policies) rule(namespaced bool) object {
	if !namespaced && p.IntN(4) == 0 {
		return object{"verbs": p.some(2, verbs), "nonResourceURLs": p.some(2, urls)}
	}
	rule := object{"verbs": p.some(3, verbs), "apiGroups": p.some(2, groups), "resources": p.some(3, resources)}
	if p.IntN(3) == 0 {
		rule["resourceNames"] = p.some(2, objectNames)
	}
	return rule
}

func (p policies) rules(n int, namespaced bool) []any {
	rules := []any{}
	for range p.IntN(n + 1) {
		rules = append(rules, p.rule(namespaced))
	}
	return rules
}

func (p policies) subject(namespaced bool) object {
	switch p.IntN(4) {
	case 0:
		users := ownUsers
		if namespaced && p.IntN(3) == 0 {
			users = sharedUsers[:2]
		}
		return object{"kind": "User", "name": pick(p.Rand, users)}
	case 1:
		subject := object{"kind": "ServiceAccount", "name": pick(p.Rand, []string{"robot", "other"}), "namespace": pick(p.Rand, []string{"$ns", "$ns-other"})}
		if namespaced && p.IntN(2) == 0 {
			delete(subject, "namespace")
		}
		return subject
	default:
		groups := ownGroups
		if namespaced && p.IntN(3) == 0 {
			groups = sharedGroups
		}
		return object{"kind": "Group", "name": pick(p.Rand, groups)}
	}
}

func (p policies) subjects(namespaced bool) []any {
	subjects := []any{}
	for range 1 + p.IntN(3) {
		subjects = append(subjects, p.subject(namespaced))
	}
	return subjects
}

// policy returns the requests that write a policy: roles, ClusterRoles of which some
// aggregate others, also those that aggregate, and bindings, also to roles that do not
// exist. aggregating are the names of those that aggregate.
func (p policies) policy() (steps []step, aggregating []string) {
	roles, clusterRoles := []string{"missing"}, []string{"$ns-missing"}
	for i := range 2 + p.IntN(3) {
		roles = append(roles, fmt.Sprintf("r%d", i))
		steps = append(steps, create("roles", roles[len(roles)-1], object{"rules": p.rules(3, true)}))
	}
	for i := range 2 + p.IntN(4) {
		clusterRoles = append(clusterRoles, fmt.Sprintf("$ns-c%d", i))
		role := create("clusterroles", clusterRoles[len(clusterRoles)-1], object{"rules": p.rules(3, false)})
		if p.IntN(2) == 0 {
			label(role, "$ns/level", fmt.Sprint(p.IntN(2)))
		}
		steps = append(steps, role)
	}
	// Each level aggregates those below, so there is no cycle.
	for level := range p.IntN(3) {
		name := fmt.Sprintf("$ns-a%d", level)
		aggregating = append(aggregating, name)
		selectors := []any{object{"matchLabels": object{"$ns/level": fmt.Sprint(level)}}}
		if p.IntN(3) == 0 {
			below := []any{}
			for i := range level + 1 {
				below = append(below, fmt.Sprint(i))
			}
			selectors = append(selectors, object{"matchExpressions": []any{object{"key": "$ns/level", "operator": "In", "values": below}}})
		}
		role := create("clusterroles", name, object{"aggregationRule": object{"clusterRoleSelectors": selectors}})
		label(role, "$ns/level", fmt.Sprint(level+1))
		if p.IntN(8) == 0 {
			role.Body.(object)["rules"] = p.rules(2, false) // which the controller replaces
		}
		steps = append(steps, role)
	}
	clusterRoles = append(clusterRoles, aggregating...)
	for i := range 2 + p.IntN(5) {
		ref := object{"kind": "Role", "name": pick(p.Rand, roles)}
		if p.IntN(2) == 0 {
			ref = object{"kind": "ClusterRole", "name": pick(p.Rand, clusterRoles)}
		}
		steps = append(steps, create("rolebindings", fmt.Sprintf("b%d", i), object{"roleRef": ref, "subjects": p.subjects(true)}))
	}
	for i := range p.IntN(4) {
		ref := object{"kind": "ClusterRole", "name": pick(p.Rand, clusterRoles)}
		steps = append(steps, create("clusterrolebindings", fmt.Sprintf("$ns-b%d", i), object{"roleRef": ref, "subjects": p.subjects(false)}))
	}
	p.Shuffle(len(steps), func(i, j int) { steps[i], steps[j] = steps[j], steps[i] })
	return steps, aggregating
}

// change returns a request that changes or deletes a part of the policy, which the
// steps have created.
func (p policies) change(created []step) step {
	old := pick(p.Rand, created)
	resource := old.resource()
	path := resource + "/" + metadataOf(old.Body)["name"].(string)
	if p.IntN(4) == 0 {
		return step{Do: "DELETE " + path}
	}
	namespaced := !kinds[resource].cluster
	patch := object{"subjects": p.subjects(namespaced)}
	if !strings.HasSuffix(resource, "bindings") {
		patch = object{"rules": p.rules(3, namespaced)}
	}
	return step{Do: "PATCH " + path, As: "merge", Body: patch}
}

// create returns a request that creates an object, with the label of the scenario.
func create(resource, name string, body object) step {
	body["metadata"] = object{"name": name}
	s := step{Do: "POST " + resource, Body: body}
	label(s, "scenario", "$ns")
	return s
}

func label(s step, key, value string) {
	metadata := metadataOf(s.Body)
	labels, _ := metadata["labels"].(object)
	if labels == nil {
		labels = object{}
		metadata["labels"] = labels
	}
	labels[key] = value
}

// grant returns the requests that give a user a role with these rules: in the
// Namespace, or everywhere.
func grant(name, user string, everywhere bool, rules ...any) []step {
	prefix, role, resource, binding := "", "Role", "roles", "rolebindings"
	if everywhere {
		prefix, role, resource, binding = "$ns-", "ClusterRole", "clusterroles", "clusterrolebindings"
	}
	return []step{
		create(resource, prefix+name, object{"rules": rules}),
		create(binding, prefix+name, object{
			"roleRef":  object{"kind": role, "name": prefix + name},
			"subjects": []any{object{"kind": "User", "name": user}},
		}),
	}
}

// awaitPolicy returns requests after which both sides decide by everything that was
// written before. The authorizer of Kubernetes sees the objects of each kind in the
// order in which they were written, so it is enough to wait for the last of each.
func awaitPolicy(name string) (steps []step) {
	user := "$ns-" + name
	rule := object{"verbs": []any{"get"}, "apiGroups": []any{rbacv1.GroupName}, "resources": []any{"roles", "clusterroles"}, "resourceNames": []any{name, user}}
	steps = append(grant(name, user, false, rule), grant(name, user, true, clone(rule))...)
	// The right to get clusterroles is only everywhere. That to get roles in the
	// Namespace must come from there.
	steps[0].Body.(object)["rules"].([]any)[0].(object)["resources"] = []any{"roles"}
	steps[2].Body.(object)["rules"].([]any)[0].(object)["resources"] = []any{"clusterroles"}
	return append(steps,
		step{Do: "GET roles/" + name, User: &identity{Name: user}, Until: 200},
		step{Do: "GET clusterroles/" + user, User: &identity{Name: user}, Until: 200})
}

// removePolicy returns requests that delete what is not in the Namespace. Roles that
// aggregate are deleted first, so that no controller writes to the others.
func removePolicy(aggregating []string) (steps []step) {
	for _, name := range aggregating {
		steps = append(steps, step{Do: "DELETE clusterroles/" + name})
	}
	return append(steps,
		step{Do: "DELETE clusterrolebindings?labelSelector=scenario=$ns"},
		step{Do: "DELETE clusterroles?labelSelector=scenario=$ns"})
}
