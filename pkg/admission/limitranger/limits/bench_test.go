// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package limits_test

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/borough-io/borough/pkg/admission/limitranger/limits"
	v1 "github.com/borough-io/borough/pkg/apis/tenancy/v1"
)

func benchmarkLimitRanges(n int) []*v1.LimitRange {
	var ranges []*v1.LimitRange
	for i := range n {
		ranges = append(ranges, limitRange(fmt.Sprintf("limits-%d", i),
			corev1.LimitRangeItem{
				Type:                 corev1.LimitTypeContainer,
				Min:                  quantities("cpu", "10m", "memory", "16Mi"),
				Max:                  quantities("cpu", "4", "memory", "8Gi"),
				Default:              quantities("cpu", "500m", "memory", "512Mi"),
				DefaultRequest:       quantities("cpu", "250m", "memory", "256Mi"),
				MaxLimitRequestRatio: quantities("cpu", "4"),
			},
			corev1.LimitRangeItem{
				Type: corev1.LimitTypePod,
				Min:  quantities("cpu", "10m", "memory", "16Mi"),
				Max:  quantities("cpu", "64", "memory", "128Gi"),
			}))
	}
	return ranges
}

func benchmarkSpec(containers int) *corev1.PodSpec {
	spec := &corev1.PodSpec{}
	for i := range containers {
		spec.Containers = append(spec.Containers, corev1.Container{Name: fmt.Sprintf("c-%d", i)})
	}
	return spec
}

// BenchmarkSet measures the defaulting and the check of a Pod, without NewSet.
func BenchmarkSet(b *testing.B) {
	for _, containers := range []int{1, 10} {
		for _, ranges := range []int{1, 5} {
			size := fmt.Sprintf("containers=%d/limitranges=%d", containers, ranges)
			set := limits.NewSet(benchmarkLimitRanges(ranges))
			b.Run("SetDefaults/"+size, func(b *testing.B) {
				b.ReportAllocs()
				spec := benchmarkSpec(containers)
				for b.Loop() {
					for i := range spec.Containers {
						spec.Containers[i].Resources = corev1.ResourceRequirements{}
					}
					if noError(set.SetDefaults(spec)) == "" {
						b.Fatal("nothing was set")
					}
				}
			})
			b.Run("Check/"+size, func(b *testing.B) {
				b.ReportAllocs()
				spec := benchmarkSpec(containers)
				noError(set.SetDefaults(spec))
				for b.Loop() {
					if errs := set.Check(spec); len(errs) > 0 {
						b.Fatal(errs)
					}
				}
			})
		}
	}
}

// BenchmarkNewSet measures NewSet, which runs once for each change of a
// LimitRange.
func BenchmarkNewSet(b *testing.B) {
	ranges := benchmarkLimitRanges(5)
	b.ReportAllocs()
	for b.Loop() {
		limits.NewSet(ranges)
	}
}
