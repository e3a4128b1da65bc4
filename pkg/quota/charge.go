// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package quota

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	quotav1 "k8s.io/apiserver/pkg/quota/v1"

	"github.com/borough-io/borough/pkg/apis/tenancy"
	"github.com/borough-io/borough/pkg/corepod"
)

// Change is a write of one object.
type Change struct {
	Resource schema.GroupResource
	// Old and New are what the object uses before and after the write, nil if it does
	// not exist then.
	Old, New *Usage
	// StatusOnly means that the write changes only the status: a node reports what it has
	// allocated already, which no quota denies.
	StatusOnly bool
	// Unknown means that Old cannot be read: the write deletes the object, and the
	// quotas have to be counted again.
	Unknown bool
}

// IsNeutral reports whether the write changes no quota.
func (c *Change) IsNeutral() bool {
	return !c.Unknown && c.Old != nil && c.New != nil && c.Old.hasSameScopes(c.New) && quotav1.Equals(c.Old.resources, c.New.resources)
}

// Counted reports whether the usage of a quota is known, by the rules of this version.
func Counted(quota *tenancy.ResourceQuota) bool {
	if len(quota.Status.Hard) > 0 && quota.Annotations[tenancy.UsageRulesAnnotation] != Rules {
		return false
	}
	for name := range quota.Status.Hard {
		if _, ok := quota.Status.Used[name]; !ok {
			return false
		}
	}
	return quotav1.Equals(quota.Status.Hard, quota.Spec.Hard)
}

// Used returns the usage of a counted quota after the write: nil if it does not change,
// and empty if the quota has to be counted again. It returns a Denial if the quota does not
// allow the write: usage may grow only up to spec.hard, and containers must name the CPU and
// memory that a quota limits.
func (c *Change) Used(quota *tenancy.ResourceQuota) (corev1.ResourceList, *Denial) {
	if c.Unknown {
		return corev1.ResourceList{}, nil
	}
	before, after := c.Old.charged(quota), c.New.charged(quota)
	delta := after
	if before != nil {
		delta = quotav1.Subtract(after, before)
	}
	maps.DeleteFunc(delta, func(_ corev1.ResourceName, quantity resource.Quantity) bool { return quantity.IsZero() })
	growing := c.growing(before, delta)
	if after != nil && (before == nil || len(growing) > 0) {
		if unnamed := missing(c.New.pod, quota.Status.Hard); len(unnamed) > 0 {
			return nil, NewDenial(fmt.Sprintf("failed quota: %s: must specify %s", quota.Name, missingText(unnamed)))
		}
	}
	if len(delta) == 0 {
		return nil, nil
	}
	used := quotav1.Add(quota.Status.Used, delta)
	corepod.KeepExact(used)
	var exceeded []corev1.ResourceName
	for _, name := range growing {
		if total := used[name]; total.Cmp(quota.Status.Hard[name]) > 0 {
			exceeded = append(exceeded, name)
		}
	}
	switch {
	case len(exceeded) > 0:
	case len(quotav1.IsNegative(quotav1.Mask(used, quotav1.ResourceNames(delta)))) > 0:
		return corev1.ResourceList{}, nil // what could not be read when it was counted can be read again
	default:
		return used, nil
	}
	text := fmt.Sprintf("exceeded quota: %s, requested: %s, used: %s, limited: %s", quota.Name,
		listText(quotav1.Mask(delta, exceeded)),
		listText(quotav1.Mask(quota.Status.Used, exceeded)),
		listText(quotav1.Mask(quota.Status.Hard, exceeded)))
	return nil, &Denial{text, quota, exceeded}
}

// growing returns the resources of which the write requests more.
func (c *Change) growing(before, delta corev1.ResourceList) (names []corev1.ResourceName) {
	for name, quantity := range delta {
		if quantity.Sign() > 0 {
			names = append(names, name)
		}
	}
	switch {
	case len(names) == 0 || c.New == nil:
		return nil
	case before == nil || !c.StatusOnly || c.New.pod == nil:
		return names
	}
	requested := requested(c.New.pod) // a Pod that had ended requests it again
	return slices.DeleteFunc(names, func(name corev1.ResourceName) bool {
		request := requested[name]
		return request.Cmp(before[name]) <= 0
	})
}

// charged returns what the object uses of what a quota limits, or nil if the quota does
// not match it.
func (u *Usage) charged(quota *tenancy.ResourceQuota) corev1.ResourceList {
	if u == nil || !u.matches(&quota.Spec) {
		return nil
	}
	charged := corev1.ResourceList{}
	for name := range quota.Status.Hard {
		if quantity, used := u.resources[name]; used {
			charged[name] = quantity
		}
	}
	return charged
}

// Compact replaces quantities by integers of the same value and text where they fit. The
// library reads a large one, such as 100Ti, as a decimal of any size, with which computing
// and writing take several times as long.
func Compact(list corev1.ResourceList) {
	for name, quantity := range list {
		if _, ok := quantity.AsInt64(); ok {
			continue
		}
		// A comparison with a decimal makes its receiver one.
		if integer := resource.NewQuantity(quantity.Value(), quantity.Format); quantity.Cmp(*integer) == 0 {
			list[name] = *integer
		}
	}
}

// Total is the usage of a quota while its objects are counted.
type Total struct {
	quota *tenancy.ResourceQuota
	used  corev1.ResourceList
}

// NewTotal returns the usage of a quota if there are no objects.
func NewTotal(quota *tenancy.ResourceQuota) *Total {
	used := corev1.ResourceList{}
	for name, hard := range quota.Spec.Hard {
		used[name] = resource.Quantity{Format: hard.Format}
	}
	return &Total{quota, used}
}

// Add adds what an object uses.
func (t *Total) Add(usage *Usage) {
	if !usage.matches(&t.quota.Spec) {
		return
	}
	for name, quantity := range usage.resources {
		if used, limited := t.used[name]; limited {
			used.Add(quantity)
			t.used[name] = used
		}
	}
}

// AddCount adds a number of objects of which only the resource counts.
func (t *Total) AddCount(gr schema.GroupResource, n int64) {
	resources := Count(gr)
	for name := range resources {
		resources[name] = *resource.NewQuantity(n, resource.DecimalSI)
	}
	t.Add(&Usage{resources: resources})
}

// Counted returns the counted quota, which shares memory with the other one.
func (t *Total) Counted() *tenancy.ResourceQuota {
	corepod.KeepExact(t.used)
	counted := *t.quota
	counted.Status = corev1.ResourceQuotaStatus{Hard: t.quota.Spec.Hard.DeepCopy(), Used: t.used}
	SetRules(&counted, Rules)
	return &counted
}

func listText(list corev1.ResourceList) string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(list)) {
		quantity := list[name]
		parts = append(parts, string(name)+"="+quantity.String())
	}
	return strings.Join(parts, ",")
}

func missingText(missing map[corev1.ResourceName]sets.Set[string]) string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(missing)) {
		parts = append(parts, fmt.Sprintf("%s for: %s", name, strings.Join(sets.List(missing[name]), ",")))
	}
	return strings.Join(parts, "; ")
}
