// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package resourcequota

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/registry/rest"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/borough-io/borough/pkg/apis/coregroup"
	"github.com/borough-io/borough/pkg/apis/tenancy"
	"github.com/borough-io/borough/pkg/quota"
	"github.com/borough-io/borough/pkg/registry/standard"
)

// strategy holds the rules for ResourceQuotas. Only storage changes status.used.
type strategy struct {
	standard.KindStrategy[*tenancy.ResourceQuota]
}

var _ rest.ResetFieldsStrategy = strategy{}

// AllowCreateOnUpdate is false.
func (strategy) AllowCreateOnUpdate(context.Context) bool { return false }

// GetResetFields names the fields that a write does not change.
func (strategy) GetResetFields() map[fieldpath.APIVersion]*fieldpath.Set {
	return coregroup.ResetFields(fieldpath.MakePathOrDie("status"), fieldpath.MakePathOrDie("metadata", "annotations", tenancy.UsageRulesAnnotation))
}

// PrepareForCreate drops the status, and by which rules it was computed: storage counts the
// objects.
func (strategy) PrepareForCreate(_ context.Context, obj runtime.Object) {
	q := obj.(*tenancy.ResourceQuota)
	q.Status = corev1.ResourceQuotaStatus{Hard: q.Spec.Hard.DeepCopy()}
	quota.SetRules(q, "")
}

// PrepareForUpdate keeps the usage, or drops it if more than before is limited or other
// objects are counted: storage then counts again.
func (strategy) PrepareForUpdate(_ context.Context, obj, old runtime.Object) {
	q, oldQuota := obj.(*tenancy.ResourceQuota), old.(*tenancy.ResourceQuota)
	q.Status = corev1.ResourceQuotaStatus{Hard: q.Spec.Hard.DeepCopy()}
	quota.SetRules(q, oldQuota.Annotations[tenancy.UsageRulesAnnotation])
	if !sameScopes(&q.Spec, &oldQuota.Spec) {
		return
	}
	used := corev1.ResourceList{}
	for name := range q.Spec.Hard {
		quantity, counted := oldQuota.Status.Used[name]
		if !counted {
			return
		}
		used[name] = quantity
	}
	q.Status.Used = used
}

// sameScopes reports whether both quotas count the same objects.
func sameScopes(a, b *corev1.ResourceQuotaSpec) bool {
	return equality.Semantic.DeepEqual(a.Scopes, b.Scopes) && equality.Semantic.DeepEqual(a.ScopeSelector, b.ScopeSelector)
}

// WarningsOnCreate warns of limits on requests that are greater than those on limits.
func (strategy) WarningsOnCreate(_ context.Context, obj runtime.Object) []string {
	hard := obj.(*tenancy.ResourceQuota).Spec.Hard
	var warnings []string
	for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourceStorage, corev1.ResourceEphemeralStorage} {
		requestName, limitName := corev1.DefaultResourceRequestsPrefix+name, "limits."+name
		request, requests := hard[requestName]
		if !requests && (name == corev1.ResourceCPU || name == corev1.ResourceMemory) {
			requestName = name
			request, requests = hard[name]
		}
		if limit, limits := hard[limitName]; requests && limits && request.Cmp(limit) > 0 {
			warnings = append(warnings, fmt.Sprintf("ResourceQuota %s (%s) should be less than %s (%s)", requestName, request.String(), limitName, limit.String()))
		}
	}
	return warnings
}
