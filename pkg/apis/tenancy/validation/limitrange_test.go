// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package validation_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/borough-io/borough/pkg/apis/tenancy"
	"github.com/borough-io/borough/pkg/apis/tenancy/validation"
)

// quantities makes a ResourceList of pairs of name and quantity.
func quantities(pairs ...string) corev1.ResourceList {
	list := corev1.ResourceList{}
	for i := 0; i < len(pairs); i += 2 {
		list[corev1.ResourceName(pairs[i])] = resource.MustParse(pairs[i+1])
	}
	return list
}

func limitRange(items ...corev1.LimitRangeItem) *tenancy.LimitRange {
	return &tenancy.LimitRange{
		ObjectMeta: metav1.ObjectMeta{Name: "limits", Namespace: "ns"},
		Spec:       corev1.LimitRangeSpec{Limits: items},
	}
}

func messages(errs field.ErrorList) []string {
	var msgs []string
	for _, err := range errs {
		msgs = append(msgs, err.Error())
	}
	return msgs
}

func TestValidateLimitRange(t *testing.T) {
	const (
		notQualified = "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
		noSubdomain  = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
	)
	named := func(name string) *tenancy.LimitRange {
		lr := limitRange()
		lr.Name = name
		return lr
	}
	item := func(limitType corev1.LimitType, modify func(*corev1.LimitRangeItem)) *tenancy.LimitRange {
		item := corev1.LimitRangeItem{Type: limitType}
		modify(&item)
		return limitRange(item)
	}
	container := func(modify func(*corev1.LimitRangeItem)) *tenancy.LimitRange {
		return item(corev1.LimitTypeContainer, modify)
	}

	for name, test := range map[string]struct {
		lr   *tenancy.LimitRange
		want []string
	}{
		"without limits":       {lr: limitRange()},
		"name is a subdomain":  {lr: named("a.b-c.d")},
		"name is no subdomain": {lr: named("Limits"), want: []string{`metadata.name: Invalid value: "Limits": ` + noSubdomain}},
		"all fields": {lr: limitRange(
			corev1.LimitRangeItem{
				Type:                 corev1.LimitTypePod,
				Max:                  quantities("cpu", "100m", "memory", "10000Mi", "example.com/gpu", "4", "hugepages-2Mi", "4Mi"),
				Min:                  quantities("cpu", "5m", "memory", "100Mi"),
				MaxLimitRequestRatio: quantities("cpu", "10"),
			},
			corev1.LimitRangeItem{
				Type:                 corev1.LimitTypeContainer,
				Max:                  quantities("cpu", "100m", "ephemeral-storage", "1Gi"),
				Min:                  quantities("cpu", "5m"),
				Default:              quantities("cpu", "50m", "ephemeral-storage", "1Gi"),
				DefaultRequest:       quantities("cpu", "10m"),
				MaxLimitRequestRatio: quantities("cpu", "10"),
			},
			corev1.LimitRangeItem{Type: corev1.LimitTypePersistentVolumeClaim, Max: quantities("storage", "10Gi"), Min: quantities("storage", "5Gi")},
			corev1.LimitRangeItem{Type: "example.com/thing", Max: quantities("storage", "1", "pods", "1", "kubernetes.io/anything", "1")},
		)},
		"equal bounds": {lr: container(func(i *corev1.LimitRangeItem) {
			i.Min, i.DefaultRequest, i.Default, i.Max = quantities("cpu", "1"), quantities("cpu", "1000m"), quantities("cpu", "1"), quantities("cpu", "1")
			i.MaxLimitRequestRatio = quantities("cpu", "1")
		})},
		"type empty": {lr: limitRange(corev1.LimitRangeItem{}), want: []string{
			`spec.limits[0].type: Invalid value: "": name part must be non-empty`,
			`spec.limits[0].type: Invalid value: "": ` + notQualified,
		}},
		"type not standard": {lr: limitRange(corev1.LimitRangeItem{Type: "Foo"}), want: []string{
			`spec.limits[0].type: Invalid value: "Foo": must be a standard limit type or fully qualified`,
		}},
		"type twice": {lr: limitRange(corev1.LimitRangeItem{Type: corev1.LimitTypePod}, corev1.LimitRangeItem{Type: corev1.LimitTypePod}), want: []string{
			`spec.limits[1].type: Duplicate value: "Pod"`,
		}},
		"resource not qualified": {lr: item("example.com/thing", func(i *corev1.LimitRangeItem) { i.Max = quantities("-a-", "1") }), want: []string{
			`spec.limits[0].max[-a-]: Invalid value: "-a-": ` + notQualified,
		}},
		"resource not standard": {lr: item("example.com/thing", func(i *corev1.LimitRangeItem) { i.Min = quantities("gpu", "1") }), want: []string{
			`spec.limits[0].min[gpu]: Invalid value: "gpu": must be a standard resource type or fully qualified`,
		}},
		"resource not for containers": {lr: container(func(i *corev1.LimitRangeItem) { i.Default = quantities("storage", "1") }), want: []string{
			`spec.limits[0].default[storage]: Invalid value: "storage": must be a standard resource for containers`,
		}},
		"resource not for pods": {lr: item(corev1.LimitTypePod, func(i *corev1.LimitRangeItem) { i.Max = quantities("gpu", "1") }), want: []string{
			`spec.limits[0].max[gpu]: Invalid value: "gpu": must be a standard resource type or fully qualified`,
			`spec.limits[0].max[gpu]: Invalid value: "gpu": must be a standard resource for containers`,
		}},
		"extended resource of a quota": {lr: container(func(i *corev1.LimitRangeItem) { i.DefaultRequest = quantities("requests.example.com/gpu", "1") }), want: []string{
			`spec.limits[0].defaultRequest[requests.example.com/gpu]: Invalid value: "requests.example.com/gpu": doesn't follow extended resource name standard`,
		}},
		"ratio of an unknown resource": {lr: container(func(i *corev1.LimitRangeItem) { i.MaxLimitRequestRatio = quantities("storage", "2") }), want: []string{
			`spec.limits[0].maxLimitRequestRatio[storage]: Invalid value: "storage": must be a standard resource for containers`,
		}},
		"pod with defaults": {lr: item(corev1.LimitTypePod, func(i *corev1.LimitRangeItem) {
			i.Max, i.Default, i.DefaultRequest = quantities("cpu", "1"), quantities("cpu", "2"), quantities("cpu", "3")
		}), want: []string{
			"spec.limits[0].default: Forbidden: may not be specified when `type` is 'Pod'",
			"spec.limits[0].defaultRequest: Forbidden: may not be specified when `type` is 'Pod'",
		}},
		"claim without storage": {lr: item(corev1.LimitTypePersistentVolumeClaim, func(i *corev1.LimitRangeItem) { i.Max = quantities("cpu", "1") }), want: []string{
			`spec.limits[0].limits: Required value: either minimum or maximum storage value is required, but neither was provided`,
		}},
		"min over max": {lr: container(func(i *corev1.LimitRangeItem) { i.Min, i.Max = quantities("cpu", "2"), quantities("cpu", "1") }), want: []string{
			`spec.limits[0].min[cpu]: Invalid value: "2": min value 2 is greater than max value 1`,
		}},
		"min over defaultRequest": {lr: container(func(i *corev1.LimitRangeItem) {
			i.Min, i.DefaultRequest = quantities("cpu", "2"), quantities("cpu", "1")
		}), want: []string{
			`spec.limits[0].defaultRequest[cpu]: Invalid value: "1": min value 2 is greater than default request value 1`,
		}},
		"defaultRequest over max": {lr: container(func(i *corev1.LimitRangeItem) {
			i.DefaultRequest, i.Max = quantities("cpu", "2"), quantities("cpu", "1")
		}), want: []string{
			`spec.limits[0].defaultRequest[cpu]: Invalid value: "2": default request value 2 is greater than max value 1`,
		}},
		"defaultRequest over default": {lr: container(func(i *corev1.LimitRangeItem) {
			i.DefaultRequest, i.Default = quantities("memory", "2Gi"), quantities("memory", "1Gi")
		}), want: []string{
			`spec.limits[0].defaultRequest[memory]: Invalid value: "2Gi": default request value 2Gi is greater than default limit value 1Gi`,
		}},
		"min over default": {lr: container(func(i *corev1.LimitRangeItem) { i.Min, i.Default = quantities("cpu", "2"), quantities("cpu", "1") }), want: []string{
			`spec.limits[0].default[cpu]: Invalid value: "2": min value 2 is greater than default value 1`,
		}},
		"default over max": {lr: container(func(i *corev1.LimitRangeItem) { i.Default, i.Max = quantities("cpu", "2"), quantities("cpu", "1") }), want: []string{
			`spec.limits[0].default[cpu]: Invalid value: "1": default value 2 is greater than max value 1`,
		}},
		"ratio under 1": {lr: container(func(i *corev1.LimitRangeItem) { i.MaxLimitRequestRatio = quantities("cpu", "900m") }), want: []string{
			`spec.limits[0].maxLimitRequestRatio[cpu]: Invalid value: "900m": ratio 900m is less than 1`,
		}},
		"ratio over max/min": {lr: container(func(i *corev1.LimitRangeItem) {
			i.Min, i.Max, i.MaxLimitRequestRatio = quantities("cpu", "600m"), quantities("cpu", "1"), quantities("cpu", "2")
		}), want: []string{
			`spec.limits[0].maxLimitRequestRatio[cpu]: Invalid value: "2": ratio 2 is greater than max/min = 1.666667`,
		}},
		"ratio over max/min beyond milli precision": {lr: container(func(i *corev1.LimitRangeItem) {
			i.Min, i.Max, i.MaxLimitRequestRatio = quantities("memory", "4Ei"), quantities("memory", "6Ei"), quantities("memory", "1600m")
		}), want: []string{
			`spec.limits[0].maxLimitRequestRatio[memory]: Invalid value: "1600m": ratio 1600m is greater than max/min = 1.500000`,
		}},
		"ratio with a min of 0": {lr: container(func(i *corev1.LimitRangeItem) {
			i.Min, i.Max, i.MaxLimitRequestRatio = quantities("cpu", "0", "memory", "0"), quantities("cpu", "1", "memory", "0"), quantities("cpu", "2", "memory", "2")
		})},
		"huge pages overcommitted": {lr: container(func(i *corev1.LimitRangeItem) {
			i.Default, i.DefaultRequest = quantities("hugepages-2Mi", "4Mi"), quantities("hugepages-2Mi", "2Mi")
		}), want: []string{
			`spec.limits[0].defaultRequest[hugepages-2Mi]: Invalid value: "2Mi": default value 4Mi must equal to defaultRequest value 2Mi in hugepages-2Mi`,
		}},
		"extended resource overcommitted": {lr: container(func(i *corev1.LimitRangeItem) {
			i.Default, i.DefaultRequest = quantities("example.com/gpu", "2"), quantities("example.com/gpu", "1")
		}), want: []string{
			`spec.limits[0].defaultRequest[example.com/gpu]: Invalid value: "1": default value 2 must equal to defaultRequest value 1 in example.com/gpu`,
		}},
		"everything wrong, in one order": {lr: container(func(i *corev1.LimitRangeItem) {
			i.Min, i.DefaultRequest = quantities("cpu", "5", "memory", "5"), quantities("cpu", "4", "memory", "4")
			i.Default, i.Max = quantities("cpu", "3", "memory", "3"), quantities("cpu", "2", "memory", "2")
			i.MaxLimitRequestRatio = quantities("cpu", "1")
		}), want: []string{
			`spec.limits[0].min[cpu]: Invalid value: "5": min value 5 is greater than max value 2`,
			`spec.limits[0].defaultRequest[cpu]: Invalid value: "4": min value 5 is greater than default request value 4`,
			`spec.limits[0].defaultRequest[cpu]: Invalid value: "4": default request value 4 is greater than max value 2`,
			`spec.limits[0].defaultRequest[cpu]: Invalid value: "4": default request value 4 is greater than default limit value 3`,
			`spec.limits[0].default[cpu]: Invalid value: "5": min value 5 is greater than default value 3`,
			`spec.limits[0].default[cpu]: Invalid value: "2": default value 3 is greater than max value 2`,
			`spec.limits[0].maxLimitRequestRatio[cpu]: Invalid value: "1": ratio 1 is greater than max/min = 0.400000`,
			`spec.limits[0].min[memory]: Invalid value: "5": min value 5 is greater than max value 2`,
			`spec.limits[0].defaultRequest[memory]: Invalid value: "4": min value 5 is greater than default request value 4`,
			`spec.limits[0].defaultRequest[memory]: Invalid value: "4": default request value 4 is greater than max value 2`,
			`spec.limits[0].defaultRequest[memory]: Invalid value: "4": default request value 4 is greater than default limit value 3`,
			`spec.limits[0].default[memory]: Invalid value: "5": min value 5 is greater than default value 3`,
			`spec.limits[0].default[memory]: Invalid value: "2": default value 3 is greater than max value 2`,
		}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, messages(validation.ValidateLimitRange(test.lr))); diff != "" {
				t.Errorf("-want +got\n%s", diff)
			}
		})
	}
}

func TestValidateLimitRangeUpdate(t *testing.T) {
	stored := limitRange(corev1.LimitRangeItem{Type: corev1.LimitTypePod, Max: quantities("cpu", "1")})
	stored.ResourceVersion = "1"

	changed := stored.DeepCopy()
	changed.Spec.Limits[0] = corev1.LimitRangeItem{Type: corev1.LimitTypeContainer, Min: quantities("memory", "1Mi")}
	if errs := validation.ValidateLimitRangeUpdate(changed, stored); len(errs) > 0 {
		t.Errorf("the limits may change: %v", errs)
	}

	changed.Spec.Limits[0].Type = "Foo"
	changed.Name = "other"
	got := strings.Join(messages(validation.ValidateLimitRangeUpdate(changed, stored)), "\n")
	for _, want := range []string{
		`metadata.name: Invalid value: "other": field is immutable`,
		`spec.limits[0].type: Invalid value: "Foo": must be a standard limit type or fully qualified`,
	} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
}
