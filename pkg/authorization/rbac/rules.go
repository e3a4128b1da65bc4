// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package rbac

import (
	"fmt"
	"hash/maphash"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apiserver/pkg/authorization/authorizer"
)

// ruleAllows reports whether the rule allows the request.
func ruleAllows(rule *rbacv1.PolicyRule, a authorizer.Attributes) bool {
	if !matches(rule.Verbs, a.GetVerb()) {
		return false
	}
	if !a.IsResourceRequest() {
		return slices.ContainsFunc(rule.NonResourceURLs, func(url string) bool { return matchesPath(url, a.GetPath()) })
	}
	return matches(rule.APIGroups, a.GetAPIGroup()) &&
		matchesResource(rule.Resources, a.GetResource(), a.GetSubresource()) &&
		(len(rule.ResourceNames) == 0 || slices.Contains(rule.ResourceNames, a.GetName()))
}

// matches reports whether the list has the value or "*".
func matches(list []string, value string) bool {
	for _, s := range list {
		if s == value || s == "*" {
			return true
		}
	}
	return false
}

// matchesResource reports whether the list has the resource, "*" for all resources, or
// "*/SUBRESOURCE" for that subresource of all resources.
func matchesResource(list []string, resource, subresource string) bool {
	for _, s := range list {
		if s == rbacv1.ResourceAll {
			return true
		}
		if subresource == "" {
			if s == resource {
				return true
			}
			continue
		}
		// Without strings.Cut: a name of a resource in a request may have a slash.
		if len(s) == len(resource)+1+len(subresource) && s[len(resource)] == '/' &&
			s[:len(resource)] == resource && s[len(resource)+1:] == subresource {
			return true
		}
		if rest, ok := strings.CutPrefix(s, "*/"); ok && rest == subresource {
			return true
		}
	}
	return false
}

// matchesPath reports whether the URL of a rule, which may end in "*", matches a path.
func matchesPath(url, path string) bool {
	if url == path || url == rbacv1.NonResourceAll {
		return true
	}
	return strings.HasSuffix(url, "*") && strings.HasPrefix(path, strings.TrimRight(url, "*"))
}

// lists returns the lists of a rule.
func lists(r *rbacv1.PolicyRule) [5][]string {
	return [...][]string{r.Verbs, r.APIGroups, r.Resources, r.ResourceNames, r.NonResourceURLs}
}

// describeRule returns the fields of a rule that are set, as the errors of Kubernetes
// describe them.
func describeRule(rule rbacv1.PolicyRule) string {
	var fields []string
	for _, f := range []struct {
		name   string
		values []string
	}{
		{"APIGroups", rule.APIGroups},
		{"Resources", rule.Resources},
		{"NonResourceURLs", rule.NonResourceURLs},
		{"ResourceNames", rule.ResourceNames},
		{"Verbs", rule.Verbs},
	} {
		if len(f.values) > 0 {
			fields = append(fields, fmt.Sprintf("%s:%q", f.name, f.values))
		}
	}
	return "{" + strings.Join(fields, ", ") + "}"
}

// mergeVerbs combines rules for one and the same resource of one group, and at most
// one name, into one rule with all their verbs.
func mergeVerbs(rules []rbacv1.PolicyRule) []rbacv1.PolicyRule {
	type resource struct{ group, resource, names string }
	var merged []rbacv1.PolicyRule
	at := map[resource]int{}
	for _, rule := range rules {
		if len(rule.APIGroups) != 1 || len(rule.Resources) != 1 || len(rule.ResourceNames) > 1 || len(rule.NonResourceURLs) > 0 {
			merged = append(merged, rule)
			continue
		}
		key := resource{rule.APIGroups[0], rule.Resources[0], fmt.Sprintf("%q", rule.ResourceNames)}
		i, found := at[key]
		if !found {
			at[key] = len(merged)
			merged = append(merged, *rule.DeepCopy())
			continue
		}
		merged[i].Verbs = append(merged[i].Verbs, rule.Verbs...)
	}
	return merged
}

// unique removes from the rules those that stand before. Of two rules with the same hash,
// it compares only the first one with others, so it may leave some.
func unique(rules []rbacv1.PolicyRule) []rbacv1.PolicyRule {
	seed := maphash.MakeSeed()
	seen := make(map[uint64]rbacv1.PolicyRule, len(rules))
	return slices.DeleteFunc(rules, func(rule rbacv1.PolicyRule) bool {
		var hash maphash.Hash
		hash.SetSeed(seed)
		for _, list := range lists(&rule) {
			for _, s := range list {
				_, _ = hash.WriteString(s)
				_ = hash.WriteByte(0)
			}
			_ = hash.WriteByte(1)
		}
		first, found := seen[hash.Sum64()]
		if !found {
			seen[hash.Sum64()] = rule
		}
		return found && equalRules(&first, &rule)
	})
}

func equalRules(a, b *rbacv1.PolicyRule) bool {
	ofA, ofB := lists(a), lists(b)
	return slices.EqualFunc(ofA[:], ofB[:], slices.Equal[[]string])
}
