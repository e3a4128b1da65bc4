// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package differential

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

// reviewsOfPolicy is the number of requests that are reviewed by one policy, before
// and after it is changed.
const reviewsOfPolicy = 40

// policiesOf returns the number of scenarios that write a policy. Each has many requests.
func policiesOf(cases int) int { return max(1, cases/4) }

// TestDecisions writes policies, and reviews requests by them.
func TestDecisions(t *testing.T) {
	check(t, generateN(t, policiesOf(*cases), func(r *rand.Rand) scenario {
		p := policies{r}
		steps, aggregating := p.policy()
		created := steps
		for round := range 2 {
			if round == 1 {
				change := p.change(created)
				steps = append(steps, change)
				if path, found := strings.CutPrefix(change.Do, "DELETE "); found {
					aggregating = without(aggregating, []string{strings.TrimPrefix(path, "clusterroles/")})
				}
			}
			for _, name := range aggregating {
				steps = append(steps, step{Do: "GET clusterroles/" + name, Settle: true})
			}
			steps = append(steps, awaitPolicy(fmt.Sprintf("sync%d", round))...)
			for range reviewsOfPolicy {
				// kube-apiserver may not have aggregated the roles yet.
				review := p.review()
				review.Settle = true
				steps = append(steps, review)
			}
		}
		return scenario{Steps: append(steps, removePolicy(aggregating)...)}
	}))
}

// review returns a review of a random request.
func (p policies) review() step {
	user := p.user()
	spec := p.attributes()
	switch p.IntN(10) {
	case 0:
		return step{Do: "POST selfsubjectaccessreviews", User: user, Body: object{"spec": spec}}
	case 1:
		namespace := pick(p.Rand, []string{"$ns", "$ns", "$ns-other"})
		return step{Do: "POST selfsubjectrulesreviews", User: user, Body: object{"spec": object{"namespace": namespace}}}
	}
	spec["user"], spec["groups"] = user.Name, user.Groups
	if p.IntN(10) == 0 {
		spec["extra"] = object{"example.com/x": []any{"y"}}
	}
	if resource, _ := spec["resourceAttributes"].(object); resource != nil && p.IntN(8) == 0 {
		resource["namespace"] = "$ns"
		return step{Do: "POST localsubjectaccessreviews", Body: object{"metadata": object{"namespace": "$ns"}, "spec": spec}}
	}
	return step{Do: "POST subjectaccessreviews", Body: object{"spec": spec}}
}

// user returns a user with the groups that authentication would add, or without.
func (p policies) user() *identity {
	if p.IntN(10) == 0 {
		return &identity{Name: "system:anonymous", Groups: []string{"system:unauthenticated"}}
	}
	user := &identity{Name: pick(p.Rand, ownUsers), Groups: []string{"system:authenticated"}}
	if p.IntN(6) == 0 {
		user.Name = pick(p.Rand, sharedUsers[:2])
	}
	for range p.IntN(3) {
		user.Groups = append(user.Groups, pick(p.Rand, ownGroups))
	}
	if strings.HasPrefix(user.Name, "system:serviceaccount:") {
		namespace := strings.Split(user.Name, ":")[2]
		user.Groups = append(user.Groups, "system:serviceaccounts", "system:serviceaccounts:"+namespace)
	}
	if p.IntN(40) == 0 {
		user.Groups = append(user.Groups, "system:masters")
	}
	return user
}

// attributes returns the spec of a review.
func (p policies) attributes() object {
	verb := pick(p.Rand, verbs)
	if p.IntN(5) == 0 {
		return object{"nonResourceAttributes": object{"verb": verb, "path": pick(p.Rand, requestPaths)}}
	}
	resource, subresource, _ := strings.Cut(pick(p.Rand, resources).(string), "/")
	if p.IntN(6) == 0 {
		subresource = pick(p.Rand, []string{"status", "log", "scale", "*", ""})
	}
	attributes := object{"verb": verb, "group": pick(p.Rand, groups), "resource": resource, "subresource": subresource, "namespace": pick(p.Rand, []string{"$ns", "$ns", "$ns", "$ns-other", ""})}
	if p.IntN(2) == 0 {
		attributes["name"] = pick(p.Rand, objectNames)
	}
	if p.IntN(6) == 0 {
		attributes["version"] = pick(p.Rand, []string{"v1", "*"})
	}
	if p.IntN(12) == 0 {
		attributes["labelSelector"] = object{"rawSelector": pick(p.Rand, []string{"a=b", "a in (b", "!a"})}
	}
	return object{"resourceAttributes": attributes}
}
