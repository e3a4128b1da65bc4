// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package differential

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

var limitRangeType = reflect.TypeFor[corev1.LimitRange]()

// TestLimitRanges creates LimitRanges, changes them, and reads them.
func TestLimitRanges(t *testing.T) {
	checkGroups(t, few, generate(t, func(r *rand.Rand) scenario {
		m := newMutator(r)
		limitRange := object{"metadata": object{"name": "l"}, "spec": object{"limits": randomLimits(r)}}
		for range max(0, r.IntN(4)-1) {
			m.mutate(limitRange, limitRangeType, "/spec", "/metadata/labels", "/metadata/annotations", "/metadata/name", "/metadata/generateName", "/metadata/finalizers")
		}
		s := scenario{Steps: []step{{Do: "POST limitranges", Body: limitRange}, {Do: "GET limitranges/l"}}}
		if r.IntN(3) == 0 {
			s.Steps[0].Body = object{"metadata": object{"name": "l"}, "spec": object{"limits": randomLimits(r)}}
			s.Steps[1] = changeOf(m, "limitranges/l", clone(limitRange), limitRangeType, "/spec", "/metadata")
			s.Steps = append(s.Steps, step{Do: "GET limitranges/l"})
		}
		return s
	}))
}

// randomLimits returns limits, many of them valid.
func randomLimits(r *rand.Rand) []any {
	limits := []any{}
	for _, typ := range []string{"Container", "Pod", "PersistentVolumeClaim"} {
		if r.IntN(2) == 0 {
			limits = append(limits, randomLimit(r, typ))
		}
	}
	return limits
}

// randomLimit returns a limit for a few resources. The amounts of a resource
// are mostly in the required order.
func randomLimit(r *rand.Rand, typ string) object {
	limit := object{"type": typ}
	fields := []string{"min", "defaultRequest", "default", "max"}
	if typ != "Container" {
		fields = []string{"min", "max"}
	}
	names := []string{"cpu", "memory", "ephemeral-storage", "hugepages-2Mi", "example.com/gpu"}
	if typ == "PersistentVolumeClaim" {
		names = []string{"storage"}
	}
	r.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
	for _, name := range names[:1+r.IntN(min(2, len(names)))] {
		amount := 0
		for _, field := range fields {
			amount += r.IntN(4)
			if r.IntN(3) > 0 {
				list, _ := limit[field].(object)
				if list == nil {
					list = object{}
					limit[field] = list
				}
				list[name] = amountOf(r, name, amount)
			}
		}
		if r.IntN(4) == 0 {
			limit["maxLimitRequestRatio"] = object{name: pick(r, []any{"1", "1", "2", "1.5", "3", "0.5", "2500m", "1000", "1.0001"})}
		}
	}
	return limit
}

// amountOf formats an amount of a resource in one of many ways, and sometimes
// returns a different amount.
func amountOf(r *rand.Rand, resource string, amount int) any {
	if r.IntN(20) == 0 {
		return pick(r, quantities)
	}
	switch resource {
	case "cpu":
		return pick(r, []any{fmt.Sprintf("%d00m", amount), fmt.Sprint(float64(amount) / 10), float64(amount) / 10, fmt.Sprintf("%d00000u", amount), fmt.Sprintf("%de-1", amount)})
	case "hugepages-2Mi":
		return fmt.Sprintf("%dMi", 2*amount)
	case "example.com/gpu":
		return fmt.Sprint(amount)
	}
	return pick(r, []any{fmt.Sprintf("%dMi", amount), amount << 20, fmt.Sprintf("%dKi", amount<<10), fmt.Sprintf("%d.0Mi", amount), fmt.Sprintf("%d000m", amount<<20)})
}

// foldContradictions removes the warnings of LimitRanges that contradict each other.
func foldContradictions(x *exchange) {
	contradiction := func(warning string) bool {
		return strings.HasPrefix(warning, `299 - "LimitRanges `) && strings.Contains(warning, " contradict each other: ")
	}
	if slices.ContainsFunc(x.borough.Warnings, contradiction) {
		// Without warnings there is no header, and no slice.
		x.borough.Warnings = append([]string(nil), slices.DeleteFunc(x.borough.Warnings, contradiction)...)
	}
}
