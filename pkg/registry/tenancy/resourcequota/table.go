// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package resourcequota

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/borough-io/borough/pkg/apis/tenancy"
	"github.com/borough-io/borough/pkg/registry/table"
)

// newTableConvertor prints ResourceQuotas as kubectl prints those of core/v1, and in the
// wide output what is left.
func newTableConvertor() rest.TableConvertor {
	return table.NewConvertor(
		[]metav1.TableColumnDefinition{
			table.NameColumn(),
			{Name: "Request", Type: "string", Description: "Request represents a minimum amount of cpu/memory that a container may consume."},
			{Name: "Limit", Type: "string", Description: "Limits control the maximum amount of cpu/memory that a container may use independent of contention on the node."},
			table.AgeColumn(),
			{Name: "Left", Type: "string", Priority: 1, Description: "What can still be used of each resource."},
		}, row)
}

func row(quota *tenancy.ResourceQuota) ([]any, []metav1.TableRowCondition) {
	var requests, limits, left []string
	for _, name := range slices.Sorted(maps.Keys(quota.Status.Hard)) {
		hard := quota.Status.Hard[name]
		used, counted := quota.Status.Used[name]
		usage := fmt.Sprintf("%s: %s/%s", name, used.String(), hard.String())
		if strings.HasPrefix(string(name), "limits.") {
			limits = append(limits, usage)
		} else {
			requests = append(requests, usage)
		}
		if counted {
			left = append(left, leftOf(name, hard, used))
		}
	}
	return []any{quota.Name, strings.Join(requests, ", "), strings.Join(limits, ", "), table.Age(quota.CreationTimestamp), strings.Join(left, ", ")}, nil
}

// leftOf says how much of a resource is left: nothing if more is used than allowed.
func leftOf(name corev1.ResourceName, hard, used resource.Quantity) string {
	left := hard.DeepCopy()
	left.Sub(used)
	if left.Sign() < 0 {
		left = resource.Quantity{Format: hard.Format}
	}
	return fmt.Sprintf("%s: %s", name, left.String())
}
