// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package rbac

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apiserver/pkg/endpoints/request"
)

// The bounds of the cost of a comparison of rules.
const (
	maxCombinations = 10_000
	maxComparisons  = 2_000_000 // less than a second
	// longString is the length from which a string counts as several in a role that is
	// written. Names are shorter.
	longString = 256
	// usualString is that length for a string of the rules that a user holds, which can be
	// many more. Most names are shorter.
	usualString = 32
	// maxMissingBytes is the length up to which an error lists the rights that a user
	// lacks, in bytes. A right has up to four strings of the rules, each of which can be
	// in thousands of rights.
	maxMissingBytes = 64 << 10
)

// weight returns the number of strings, counting long ones several times.
func weight(list []string, long int) int {
	n := len(list)
	for _, s := range list {
		n += len(s) / long
	}
	return n
}

// combinations returns the number of rights that cannot be divided in the rules, or a
// number above the maximum.
func combinations(rules []rbacv1.PolicyRule) int {
	total := 0
	for i := range rules {
		r := &rules[i]
		n := weight(r.Verbs, longString)
		for _, factor := range []int{weight(r.APIGroups, longString), weight(r.Resources, longString) + weight(r.NonResourceURLs, longString), weight(r.ResourceNames, longString)} {
			n = min(n*max(factor, 1), math.MaxInt32)
		}
		total = min(total+n, math.MaxInt32)
	}
	return total
}

// sizeOf returns the number of strings in a rule that a user holds, counting long ones
// several times.
func sizeOf(rule *rbacv1.PolicyRule) int {
	size := 0
	for _, list := range lists(rule) {
		size += weight(list, usualString)
	}
	return size
}

// ConfirmHeld returns nil if the user of the request holds all rights of the rules,
// in the namespace of the request. Otherwise it returns an error with those that the
// user lacks, up to maxMissingBytes.
func (z *Authorizer) ConfirmHeld(ctx context.Context, rules []rbacv1.PolicyRule) error {
	u, ok := request.UserFrom(ctx)
	if !ok {
		return errors.New("no user on context")
	}
	held, complete, missingRoles, err := z.rulesFor(ctx, u, request.NamespaceValue(ctx))
	if err != nil {
		return err
	}
	// Each combination of a verb, a group, a resource and a name is compared with each
	// rule that is held. The numbers grow faster than the objects.
	n := combinations(rules)
	if n > maxCombinations {
		return fmt.Errorf("the rules have %d combinations of verbs, groups, resources and names, more than the %d that can be compared with the rights of the user", n, maxCombinations)
	}
	comparisons := 0
	held = unique(held)
	for i := range held {
		comparisons += n * max(len(held[i].NonResourceURLs), 1)
	}
	if comparisons > maxComparisons {
		return fmt.Errorf("%d combinations of verbs, groups, resources and names are too many to compare with %d rules of the user", n, len(held))
	}
	missing, err := uncovered(ctx, held, rules)
	if err != nil || len(missing) == 0 {
		return err
	}
	if !complete {
		return fmt.Errorf("the rules of the user have more than %d verbs, groups, resources, names and URLs, too many to compare", maxHeld)
	}
	var lines []string
	for _, rule := range mergeVerbs(missing) {
		lines = append(lines, describeRule(rule))
	}
	slices.Sort(lines)
	message := fmt.Sprintf("user %q (groups=%q) is attempting to grant RBAC permissions not currently held:\n%s",
		u.GetName(), u.GetGroups(), joinLines(slices.Compact(lines)))
	if err := missingRoles.aggregate(requested(ctx)); err != nil {
		message += fmt.Sprintf("; resolution errors: [%v]", err)
	}
	return errors.New(message)
}

// joinLines joins lines up to maxMissingBytes, and says how many more there are.
func joinLines(lines []string) string {
	size := 0
	for i, line := range lines {
		if size += len(line); size > maxMissingBytes {
			return strings.Join(append(lines[:i], fmt.Sprintf("and %d more", len(lines)-i)), "\n")
		}
	}
	return strings.Join(lines, "\n")
}

// ConfirmRoleHeld returns nil if the user of the request holds all rights of a role
// that a binding in the namespace of the request refers to. It returns NotFound if
// there is no such role, and BadRequest if it can be none.
func (z *Authorizer) ConfirmRoleHeld(ctx context.Context, ref rbacv1.RoleRef) error {
	if err := z.index.RequireSync(ctx); err != nil {
		return err
	}
	switch {
	case ref.Kind != "Role" && ref.Kind != "ClusterRole":
		return apierrors.NewBadRequest(fmt.Sprintf("unsupported role reference kind: %q", ref.Kind))
	case ref.Kind == "Role" && request.NamespaceValue(ctx) == "":
		return apierrors.NewBadRequest("Namespace parameter required.")
	}
	z.index.mu.RLock()
	key := objectKey{name: ref.Name}
	if ref.Kind == "Role" {
		key.namespace = request.NamespaceValue(ctx)
	}
	r := z.index.policy.role(key)
	z.index.mu.RUnlock()
	if r == nil {
		return newNoRole(roleRef{ref.Kind, ref.Name}, requested(ctx))
	}
	return z.ConfirmHeld(ctx, r.rules)
}

// requested returns the resource of the request.
func requested(ctx context.Context) func(roleRef) string {
	return func(ref roleRef) string {
		if info, ok := request.RequestInfoFrom(ctx); ok {
			return info.Resource
		}
		return roleOf(ref)
	}
}
