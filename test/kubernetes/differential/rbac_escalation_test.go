// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package differential

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
)

// writesOfUser is the number of writes that one user attempts.
const writesOfUser = 25

// TestEscalation has users with random rights write roles and bindings.
func TestEscalation(t *testing.T) {
	check(t, generateN(t, policiesOf(*cases), func(r *rand.Rand) scenario {
		p := policies{r}
		w := p.writer()
		steps := append(w.setup, awaitPolicy("sync")...)
		for range writesOfUser {
			s := w.write()
			s.User = &identity{Name: w.user, Groups: []string{"$ns-devs"}}
			steps = append(steps, s)
		}
		for _, resource := range []string{"roles", "rolebindings", "clusterroles", "clusterrolebindings"} {
			steps = append(steps, step{Do: "GET " + resource + "?labelSelector=scenario=$ns"})
		}
		return scenario{Steps: append(steps, removePolicy(nil)...)}
	}))
}

// writer makes the writes of a user.
//
// No write changes what the authorizer decides about later ones, because that of
// Kubernetes sees it later: bindings do not refer to the roles that writes change, and give the
// writer nothing.
type writer struct {
	policies
	user  string
	setup []step
	held  []any // rules
}

func (p policies) writer() *writer {
	w := &writer{policies: p, user: "$ns-writer"}
	all := []any{"*"}
	api := object{"verbs": []any{"create", "update", "patch", "get"}, "apiGroups": []any{rbacv1.GroupName}, "resources": all}
	w.setup = append(w.setup, grant("write", w.user, p.IntN(5) > 0, api)...)
	for i := range 1 + p.IntN(3) {
		everywhere := p.IntN(2) == 0
		rules := append(p.rules(2, !everywhere), p.rule(!everywhere))
		w.held = append(w.held, rules...)
		w.setup = append(w.setup, grant(fmt.Sprintf("held%d", i), w.user, everywhere, rules...)...)
	}
	for i, verb := range []any{"escalate", "bind"} {
		if p.IntN(3) > 0 {
			continue
		}
		rule := object{"verbs": []any{verb}, "apiGroups": []any{pick(p.Rand, []string{rbacv1.GroupName, rbacv1.GroupName, "*", "example.com"})}, "resources": p.some(2, []any{"roles", "clusterroles", "*", "rolebindings"})}
		if p.IntN(2) == 0 {
			rule["resourceNames"] = p.some(2, []any{"target0", "$ns-target0", "given0", "$ns-given0", "missing"})
		}
		w.setup = append(w.setup, grant(fmt.Sprintf("lift%d", i), w.user, p.IntN(2) == 0, rule)...)
	}
	switch p.IntN(12) {
	case 0:
		everything := []any{
			object{"verbs": all, "apiGroups": all, "resources": all},
			object{"verbs": all, "nonResourceURLs": all},
		}
		w.setup = append(w.setup, grant("everything", w.user, true, everything[:1+p.IntN(2)]...)...)
	case 1, 2:
		for _, role := range []string{"missing", "gone"}[:1+p.IntN(2)] {
			w.setup = append(w.setup, create("rolebindings", role, object{
				"roleRef":  object{"kind": "Role", "name": role},
				"subjects": []any{object{"kind": "Group", "name": "$ns-devs"}},
			}))
		}
	}
	// Bindings refer to the roles named given, and writes change those named target.
	for _, name := range []string{"given0", "given1", "target0", "target1"} {
		w.setup = append(w.setup,
			create("roles", name, object{"rules": w.near(true)}),
			create("clusterroles", "$ns-"+name, object{"rules": w.near(false)}))
	}
	w.setup = append(w.setup,
		create("clusterroles", "$ns-aggregating", object{"aggregationRule": object{"clusterRoleSelectors": []any{object{"matchLabels": object{"$ns": "none"}}}}}),
		create("rolebindings", "target0", object{"roleRef": object{"kind": "Role", "name": "given0"}, "subjects": []any{}}),
		create("rolebindings", "target1", object{"roleRef": object{"kind": "ClusterRole", "name": "$ns-given1"}, "subjects": w.others()}),
		create("clusterrolebindings", "$ns-target0", object{"roleRef": object{"kind": "ClusterRole", "name": "$ns-given0"}}))
	return w
}

// near returns rules of which many are held, or almost.
func (w *writer) near(namespaced bool) []any {
	rules := []any{}
	for range w.IntN(4) {
		rule := w.rule(namespaced)
		if held := clone(pick(w.Rand, w.held)).(object); w.IntN(3) > 0 && !(namespaced && held["nonResourceURLs"] != nil) {
			rule = held
			if w.IntN(3) == 0 {
				field := pick(w.Rand, []string{"verbs", "resources", "apiGroups"})
				if list, _ := rule[field].([]any); list != nil {
					rule[field] = append(list, pick(w.Rand, map[string][]any{"verbs": verbs, "resources": resources, "apiGroups": groups}[field]))
				}
			}
			if w.IntN(4) == 0 && rule["resources"] != nil {
				rule["resourceNames"] = w.some(2, objectNames)
			}
		}
		rules = append(rules, rule)
	}
	return rules
}

// others returns subjects that the writer is not.
func (w *writer) others() []any {
	return []any{object{"kind": "User", "name": pick(w.Rand, []string{"$ns-other", "$ns-another"})}}
}

func (w *writer) write() step {
	resource := pick(w.Rand, []string{"roles", "clusterroles", "rolebindings", "clusterrolebindings"})
	prefix := ""
	if kinds[resource].cluster {
		prefix = "$ns-"
	}
	body := w.body(resource, prefix)
	query := pick(w.Rand, []string{"", "", "", "?dryRun=All"})
	name := prefix + pick(w.Rand, []string{"target0", "target0", "target1", "new0", "new1"})
	if w.IntN(4) == 0 {
		s := create(resource, prefix+fmt.Sprintf("new%d", w.IntN(4)), body)
		s.Do += query
		return s
	}
	if resource == "clusterroles" && w.IntN(6) == 0 {
		name = "$ns-aggregating"
	}
	path := resource + "/" + name + query
	if w.IntN(5) == 0 {
		return w.writeMetadata(path)
	}
	switch w.IntN(5) {
	case 0:
		return step{Do: "PATCH " + path, As: "merge", Body: body}
	case 1:
		return step{Do: "PATCH " + path, As: "strategic", Body: body}
	case 2:
		field := slices.Sorted(maps.Keys(body))[0]
		patch := []any{object{"op": "add", "path": "/" + field, "value": body[field]}}
		return step{Do: "PATCH " + resource + "/" + name, As: "json", Body: patch}
	case 3:
		s := create(resource, name, body)
		return step{Do: "PATCH " + resource + "/" + name + "?fieldManager=a&force=true", As: "apply", Body: s.Body}
	}
	s := create(resource, name, body)
	s.Do = "PUT " + path
	return s
}

// writeMetadata returns a request that changes no right. One that changes what
// garbage collection needs, and nothing else, needs no right.
func (w *writer) writeMetadata(path string) step {
	return step{Do: "PATCH " + path, As: "merge", Body: object{"metadata": pick(w.Rand, []object{
		{"labels": object{"a": "b"}},
		{"finalizers": []any{}},
		{"ownerReferences": []any{}},
		{"ownerReferences": []any{object{"apiVersion": "v1", "kind": "ConfigMap", "name": "x", "uid": "x"}}},
		{"annotations": object{"a": "b"}, "ownerReferences": []any{}},
	})}}
}

func (w *writer) body(resource, prefix string) object {
	switch resource {
	case "roles":
		return object{"rules": w.near(true)}
	case "clusterroles":
		body := object{"rules": w.near(false)}
		if w.IntN(5) == 0 {
			body["aggregationRule"] = object{"clusterRoleSelectors": []any{object{"matchLabels": object{"$ns": "none"}}}}
			body["rules"] = []any{} // as the controller would write them
		}
		return body
	}
	body := object{"subjects": w.others()}
	if w.IntN(3) > 0 {
		kind, name := "ClusterRole", "$ns-"+pick(w.Rand, []string{"given0", "given0", "given1", "missing"})
		if resource == "rolebindings" && w.IntN(2) == 0 {
			kind, name = "Role", name[len("$ns-"):]
		}
		switch w.IntN(16) {
		case 0:
			kind, name = "ClusterRole", "cluster-admin"
		case 1:
			kind = pick(w.Rand, []string{"Role", "ClusterRole", "Group"})
		}
		body["roleRef"] = object{"apiGroup": rbacv1.GroupName, "kind": kind, "name": name}
	}
	return body
}
