// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package differential

import (
	"context"
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"

	v1 "github.com/borough-io/borough/pkg/apis/tenancy/v1"
)

// readBootstrapRules reads the rules that the side gives all users. They are those of
// the kinds and paths that it serves.
func (s *sender) readBootstrapRules(ctx context.Context) error {
	review := step{
		Do:   "POST selfsubjectrulesreviews",
		User: &identity{Name: "system:serviceaccount:none:none"},
		Body: object{"spec": object{"namespace": "none"}},
	}
	a, err := s.visit("none").do(ctx, review)
	if err != nil {
		return err
	}
	if a.Code != 201 {
		return fmt.Errorf("%s: review the rules of all users: %v", s.side.Name, a.Body)
	}
	s.bootstrapRules = rulesOf(&a)
	return nil
}

func rulesOf(a *answer) map[string][]any {
	rules := map[string][]any{}
	status, _ := a.field("status").(map[string]any)
	for _, name := range []string{"resourceRules", "nonResourceRules"} {
		if list, ok := status[name].([]any); ok {
			rules[name] = list
		}
	}
	return rules
}

// foldBootstrapRules removes the rules of all users from a review of rules.
func (s *sender) foldBootstrapRules(a *answer) {
	if a.field("kind") != "SelfSubjectRulesReview" {
		return
	}
	for name, rules := range rulesOf(a) {
		a.field("status").(map[string]any)[name] = slices.DeleteFunc(rules, func(rule any) bool {
			return slices.ContainsFunc(s.bootstrapRules[name], func(other any) bool { return reflect.DeepEqual(rule, other) })
		})
	}
}

// foldAudiences removes the audience of the tokens of service accounts, which are for
// Kubernetes those of all other tokens as well.
func foldAudiences(x *exchange) {
	status, _ := x.kube.field("status").(map[string]any)
	audiences, _ := status["audiences"].([]any)
	if x.kube.field("kind") == "TokenReview" && len(audiences) == 1 && audiences[0] == "https://kubernetes.default.svc.cluster.local" {
		delete(status, "audiences")
	}
}

// foldOpenPaths accepts that Borough allows the paths that it opens to all users.
func foldOpenPaths(x *exchange) {
	body, _ := x.step.Body.(map[string]any)
	spec, _ := body["spec"].(map[string]any)
	attributes, _ := spec["nonResourceAttributes"].(map[string]any)
	if open := []any{"/healthz", "/livez", "/readyz"}; attributes == nil || !slices.Contains(open, attributes["path"]) {
		return
	}
	status, _ := x.borough.field("status").(map[string]any)
	if status["allowed"] == true && status["reason"] == nil {
		*x.kube = *x.borough
	}
}

// foldVisibleNamespaces accepts that a review allows lists and watches of Namespaces,
// which have those that the user may get.
func foldVisibleNamespaces(x *exchange) {
	status, _ := x.borough.field("status").(map[string]any)
	if status["reason"] == "lists and watches have the Namespaces that the user may get" {
		*x.kube = *x.borough
	}
}

// foldOwnRights removes the rules for Borough's own group from a review of rules. No
// scenario gives rights in it.
func foldOwnRights(x *exchange) {
	status, _ := x.borough.field("status").(map[string]any)
	if rules, ok := status["resourceRules"].([]any); ok {
		status["resourceRules"] = slices.DeleteFunc(rules, func(rule any) bool {
			fields, _ := rule.(map[string]any)
			return reflect.DeepEqual(fields["apiGroups"], []any{v1.GroupName})
		})
	}
}

// foldRepeatedRules removes rules that a review has repeatedly.
func foldRepeatedRules(x *exchange) {
	if x.kube.field("kind") != "SelfSubjectRulesReview" {
		return
	}
	for _, a := range []*answer{x.kube, x.borough} {
		for name, rules := range rulesOf(a) {
			var once []any
			for _, rule := range rules {
				if !slices.ContainsFunc(once, func(other any) bool { return reflect.DeepEqual(rule, other) }) {
					once = append(once, rule)
				}
			}
			a.field("status").(map[string]any)[name] = once
		}
	}
}

// foldAggregatedRules accepts that Kubernetes leaves rules in a ClusterRole that
// aggregates none.
func foldAggregatedRules(x *exchange) {
	if x.step.resource() != "clusterroles" || x.kube.Code >= 400 || x.borough.Code >= 400 {
		return
	}
	left, _ := x.kube.field("items").([]any)
	removed, _ := x.borough.field("items").([]any)
	for i, left := range append(left, x.kube.Body) {
		removed := append(removed, x.borough.Body)[min(i, len(removed))]
		kube, borough := left.(map[string]any), removed.(map[string]any)
		if kube["aggregationRule"] != nil && kube["rules"] != nil && borough["rules"] == nil {
			maps.Copy(kube, borough)
			x.end = true
		}
	}
}

var age = regexp.MustCompile(`^(\d+[smh])+$`)

// foldTable removes ages from the cells of a table.
func foldTable(a *answer) {
	if a.field("kind") != "Table" {
		return
	}
	rows, _ := a.field("rows").([]any)
	for _, row := range rows {
		row, _ := row.(map[string]any)
		foldMetadata(row["object"])
		cells, _ := row["cells"].([]any)
		for i, cell := range cells {
			if cell, ok := cell.(string); ok && age.MatchString(cell) {
				cells[i] = "AGE"
			}
		}
	}
}
