// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package validation_test

import (
	"encoding/json"
	"math/big"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/borough-io/borough/pkg/apis/tenancy"
	"github.com/borough-io/borough/pkg/apis/tenancy/install"
	v1 "github.com/borough-io/borough/pkg/apis/tenancy/v1"
	tenancyvalidation "github.com/borough-io/borough/pkg/apis/tenancy/validation"
	"github.com/borough-io/borough/pkg/corepod/qos"
	"github.com/borough-io/borough/pkg/corepod/validation"
	"github.com/borough-io/borough/pkg/requestlimits"
)

// TestHugePages checks that huge pages are counted exactly, in pages of any size.
func TestHugePages(t *testing.T) {
	const bad = "is not positive integer multiple of"
	for _, test := range []struct {
		name, quantity string
		whole          bool
	}{
		{"hugepages-2Mi", "2Mi", true},
		{"hugepages-2Mi", "3Mi", false},
		{"hugepages-2Mi", "0", true},
		{"hugepages-2Mi", "2097151500m", true}, // rounded up, as in kube-apiserver
		{"hugepages-10E", "10E", true},         // beyond an int64, which is 0 there
		{"hugepages-10E", "15E", false},
		{"hugepages-10E", "1", false},
		{"hugepages-2Mi", "100E", false},
		{"hugepages-1Mi", "100E", true},
		{"hugepages-1e100", "1e100", true},
		{"hugepages-1e30000000", "1", false},
		{"hugepages-1e-30000000", "1", false},
		{"hugepages-0", "1", false},
		{"hugepages--1", "1", false},
		{"hugepages-1500m", "3", false},
		{"hugepages-", "1", false},
	} {
		t.Run(test.name+"="+test.quantity, func(t *testing.T) {
			pod := validPod()
			list := corev1.ResourceList{"cpu": resource.MustParse("1"), corev1.ResourceName(test.name): resource.MustParse(test.quantity)}
			pod.Spec.Containers[0].Resources = corev1.ResourceRequirements{Limits: list, Requests: list}
			found := slices.ContainsFunc(messages(validation.ValidatePodCreate(pod)), func(message string) bool { return strings.Contains(message, bad) })
			if found == test.whole {
				t.Errorf("reported as no multiple: %v", found)
			}
		})
	}
}

// FuzzQuantities gives a Pod and a LimitRange any quantities that a request can
// have. Nothing that calculates with them panics, or takes them for what they are
// not.
func FuzzQuantities(f *testing.F) {
	for _, q := range []string{"0", "1", "-1", "1m", "1n", "1e-100", "1e100", "-1e100", "100E", "9223372036854775807", "9223372036854775808",
		"9223372036854775807E", "-9223372036854775808", "8Ei", "1Ki", "1.5Gi", ".5", "5.", "+1", "999999999999999999999999999999.999999999999999"} {
		for _, name := range []string{"cpu", "memory", "hugepages-2Mi", "hugepages-10E", "hugepages-8Ei", "example.com/x"} {
			f.Add(q, "1", name)
			f.Add("10E", q, name)
		}
	}
	scheme := runtime.NewScheme()
	install.Install(scheme)
	f.Fuzz(func(t *testing.T, first, second, resourceName string) {
		a, b, ok := parse(first, second)
		if !ok {
			return
		}
		name := corev1.ResourceName(resourceName)
		requirements := corev1.ResourceRequirements{
			Limits:   corev1.ResourceList{name: a.DeepCopy(), "cpu": b.DeepCopy()},
			Requests: corev1.ResourceList{name: b.DeepCopy(), "memory": a.DeepCopy()},
		}
		pod := &corev1.Pod{Spec: corev1.PodSpec{
			Overhead: corev1.ResourceList{name: a.DeepCopy()},
			Volumes:  []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{SizeLimit: new(a.DeepCopy())}}}},
		}}
		for _, container := range []string{"a", "b"} {
			pod.Spec.Containers = append(pod.Spec.Containers, corev1.Container{Name: container, Image: "i", Resources: *requirements.DeepCopy(),
				Env: []corev1.EnvVar{{Name: "E", ValueFrom: &corev1.EnvVarSource{ResourceFieldRef: &corev1.ResourceFieldSelector{Resource: "limits." + resourceName, Divisor: b.DeepCopy()}}}}})
		}
		podLevel := pod.DeepCopy()
		podLevel.Spec.Resources = requirements.DeepCopy()
		for _, pod := range []*corev1.Pod{pod, podLevel} {
			scheme.Default((*v1.Pod)(pod))
			class := qos.ComputePodQOS(pod)
			if pod.Spec.Resources == nil && requirementsPositive(pod) && class == corev1.PodQOSBestEffort {
				t.Errorf("%v with requests is %s", pod.Spec.Containers[0].Resources, class)
			}
			for _, op := range podOps {
				validatePod(op, pod, pod.DeepCopy())
			}
		}

		exact, _ := new(big.Rat).SetString(a.AsDec().String())
		errs := messages(validation.ValidateResourceQuantity("example.com/x", a, field.NewPath("q")))
		if reported := slices.Contains(errs, "q: Invalid value: "+string(must(json.Marshal(a)))+": must be an integer"); reported == exact.IsInt() {
			t.Errorf("%s: got %q", first, errs)
		}

		item := corev1.LimitRangeItem{Type: corev1.LimitTypeContainer,
			Max: corev1.ResourceList{name: a.DeepCopy()}, Min: corev1.ResourceList{name: b.DeepCopy()}, MaxLimitRequestRatio: corev1.ResourceList{name: b.DeepCopy()}}
		lr := &v1.LimitRange{Spec: corev1.LimitRangeSpec{Limits: []corev1.LimitRangeItem{item}}}
		scheme.Default(lr)
		errs = messages(tenancyvalidation.ValidateLimitRange(&tenancy.LimitRange{Spec: lr.Spec}))
		reported := slices.ContainsFunc(errs, func(message string) bool {
			return strings.Contains(message, "min value") && strings.Contains(message, "max value")
		})
		low, high := lr.Spec.Limits[0].Min[name], lr.Spec.Limits[0].Max[name]
		if greater := low.AsDec().Cmp(high.AsDec()) > 0; greater != reported {
			t.Errorf("min %s, max %s: got %q", second, first, errs)
		}
	})
}

// requirementsPositive reports whether some container requests cpu or memory.
func requirementsPositive(pod *corev1.Pod) bool {
	r := pod.Spec.Containers[0].Resources
	for _, list := range []corev1.ResourceList{r.Limits, r.Requests} {
		for _, name := range []corev1.ResourceName{"cpu", "memory"} {
			if q := list[name]; q.Sign() > 0 {
				return true
			}
		}
	}
	return false
}

func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

// parse returns the quantities if both are some, and within the limits.
func parse(first, second string) (a, b resource.Quantity, ok bool) {
	if requestlimits.CheckQuantity(first) != "" || requestlimits.CheckQuantity(second) != "" {
		return a, b, false
	}
	a, err := resource.ParseQuantity(first)
	if err != nil {
		return a, b, false
	}
	b, err = resource.ParseQuantity(second)
	return a, b, err == nil
}
