// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package limits_test

import (
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/borough-io/borough/pkg/admission/limitranger/limits"
	v1 "github.com/borough-io/borough/pkg/apis/tenancy/v1"
)

// TestCheckLargeQuantities compares quantities, and sums of them, that an int64
// cannot hold, in units or in thousandths.
func TestCheckLargeQuantities(t *testing.T) {
	const maxInt64 = "9223372036854775807"
	perContainer := corev1.LimitTypeContainer
	memory := func(quantity string) corev1.ResourceList { return quantities("memory", quantity) }
	both := func(quantity string) corev1.Container {
		return container("c", needs(memory(quantity), memory(quantity)))
	}

	for _, test := range []struct {
		name       string
		item       corev1.LimitRangeItem
		containers []corev1.Container
		want       []string
	}{{
		name:       "a limit beyond an int64",
		item:       corev1.LimitRangeItem{Type: perContainer, Max: memory("1Gi")},
		containers: []corev1.Container{both("100E")},
		want:       []string{"maximum memory usage per Container is 1Gi, but limit is 100E"},
	}, {
		name:       "a request beyond an int64, with a limit within the maximum",
		item:       corev1.LimitRangeItem{Type: perContainer, Max: memory("1Gi")},
		containers: []corev1.Container{container("c", needs(memory("1e90"), memory("1Gi")))},
		want:       []string{"maximum memory usage per Container is 1Gi, but request is 1e90"},
	}, {
		name:       "a sum that wraps",
		item:       corev1.LimitRangeItem{Type: corev1.LimitTypePod, Max: memory("2Gi")},
		containers: []corev1.Container{both("8Ei"), both("8Ei")},
		want:       []string{"maximum memory usage per Pod is 2Gi, but limit is 18446744073709551614"},
	}, {
		name:       "a sum that wraps to a value within the bounds",
		item:       corev1.LimitRangeItem{Type: corev1.LimitTypePod, Max: memory("2Gi")},
		containers: []corev1.Container{both("8Ei"), both("8Ei"), both("1Ki")},
		want:       []string{"maximum memory usage per Pod is 2Gi, but limit is 18446744073709552638"},
	}, {
		name:       "a maximum beyond an int64",
		item:       corev1.LimitRangeItem{Type: perContainer, Max: memory("10E")},
		containers: []corev1.Container{both("1Gi")},
	}, {
		name:       "a maximum beyond an int64, met exactly",
		item:       corev1.LimitRangeItem{Type: perContainer, Max: memory("10E")},
		containers: []corev1.Container{both("10E")},
	}, {
		name:       "a maximum beyond an int64, exceeded by a thousandth",
		item:       corev1.LimitRangeItem{Type: perContainer, Max: memory("10E")},
		containers: []corev1.Container{both("10000000000000000000.001")},
		want:       []string{"maximum memory usage per Container is 10E, but limit is 10000000000000000000001m"},
	}, {
		name:       "a minimum beyond an int64",
		item:       corev1.LimitRangeItem{Type: perContainer, Min: memory("10E")},
		containers: []corev1.Container{both("1Gi"), both("9E"), both("11E")},
		want: []string{
			"minimum memory usage per Container is 10E, but request is 1Gi",
			"minimum memory usage per Container is 10E, but request is 9E",
		},
	}, {
		name:       "the largest int64 and one more",
		item:       corev1.LimitRangeItem{Type: perContainer, Max: memory(maxInt64)},
		containers: []corev1.Container{both(maxInt64), both("9223372036854775808")},
		want:       []string{"maximum memory usage per Container is " + maxInt64 + ", but limit is 9223372036854775808"},
	}, {
		name:       "a negative minimum",
		item:       corev1.LimitRangeItem{Type: perContainer, Min: memory("-100E")},
		containers: []corev1.Container{both("0"), both("100E")},
	}, {
		name:       "a ratio beyond an int64",
		item:       corev1.LimitRangeItem{Type: perContainer, MaxLimitRequestRatio: memory("100E")},
		containers: []corev1.Container{container("c", needs(memory("1m"), memory("100E"))), container("d", needs(memory("1"), memory("100E")))},
		want:       []string{"memory max limit to request ratio per Container is 100E, but provided ratio is 99999999999999991611392.000000"},
	}, {
		name:       "a ratio of limits beyond an int64",
		item:       corev1.LimitRangeItem{Type: perContainer, MaxLimitRequestRatio: memory("2")},
		containers: []corev1.Container{container("c", needs(memory("10E"), memory("20E"))), container("d", needs(memory("10E"), memory("25E")))},
		want:       []string{"memory max limit to request ratio per Container is 2, but provided ratio is 2.500000"},
	}, {
		name:       "a ratio that is a fraction, of limits beyond an int64 in thousandths",
		item:       corev1.LimitRangeItem{Type: perContainer, MaxLimitRequestRatio: memory("1500m")},
		containers: []corev1.Container{container("c", needs(memory("1E"), memory("1500P"))), container("d", needs(memory("1E"), memory("1600P")))},
		want:       []string{"memory max limit to request ratio per Container is 1500m, but provided ratio is 1.600000"},
	}} {
		t.Run(test.name, func(t *testing.T) {
			set := limits.NewSet([]*v1.LimitRange{limitRange("a", test.item)})
			spec := &corev1.PodSpec{Containers: test.containers}
			if diff := cmp.Diff(test.want, texts(set.Check(spec))); diff != "" {
				t.Errorf("-want +got\n%s", diff)
			}
			if diff := cmp.Diff(test.want, texts(set.CheckResize(spec, &corev1.PodSpec{}))); diff != "" {
				t.Errorf("resize: -want +got\n%s", diff)
			}
		})
	}
}

// TestCheckLargeQuantitiesConcurrently shows, with the race detector, that a
// comparison does not change the bounds, which requests share.
func TestCheckLargeQuantitiesConcurrently(t *testing.T) {
	set := limits.NewSet([]*v1.LimitRange{limitRange("a", corev1.LimitRangeItem{
		Type: corev1.LimitTypeContainer, Min: quantities("cpu", "1"), Max: quantities("cpu", "10E"), MaxLimitRequestRatio: quantities("cpu", "2"),
	})})
	var done sync.WaitGroup
	for range 4 {
		done.Go(func() {
			for range 100 {
				spec := &corev1.PodSpec{Containers: []corev1.Container{container("c", needs(quantities("cpu", "4E"), quantities("cpu", "100E")))}}
				if got := len(set.Check(spec)); got != 2 {
					t.Errorf("got %d violations, want 2", got)
				}
			}
		})
	}
	done.Wait()
}
