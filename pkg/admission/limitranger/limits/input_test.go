// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package limits_test

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	v1 "github.com/borough-io/borough/pkg/apis/tenancy/v1"
)

// resources are the resources of the generated LimitRanges and Pods.
var resources = []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory, "example.com/gpu"}

// input generates LimitRanges and Pods from the bytes of a fuzzer, and from zeros
// after the last byte.
type input struct {
	data []byte
}

func (in *input) below(n int) int {
	if len(in.data) == 0 {
		return 0
	}
	b := in.data[0]
	in.data = in.data[1:]
	return int(b) % n
}

func (in *input) limitRanges() []*v1.LimitRange {
	var limitRanges []*v1.LimitRange
	for i := range in.below(4) {
		var items []corev1.LimitRangeItem
		for range in.below(3) {
			item := corev1.LimitRangeItem{
				Type: []corev1.LimitType{corev1.LimitTypeContainer, corev1.LimitTypePod, corev1.LimitTypePersistentVolumeClaim}[in.below(3)],
				Min:  in.list(0),
				Max:  in.list(8),
			}
			if in.below(3) == 1 {
				item.MaxLimitRequestRatio = corev1.ResourceList{corev1.ResourceCPU: *resource.NewQuantity(int64(1+in.below(4)), resource.DecimalSI)}
			}
			if item.Type == corev1.LimitTypeContainer {
				item.Default, item.DefaultRequest = in.list(4), in.list(4)
			}
			items = append(items, item)
		}
		limitRanges = append(limitRanges, limitRange(fmt.Sprintf("limits-%d", i), items...))
	}
	return limitRanges
}

func (in *input) podSpec() corev1.PodSpec {
	spec := corev1.PodSpec{Overhead: in.list(100)}
	if in.below(4) == 1 {
		spec.Resources = &corev1.ResourceRequirements{Requests: in.list(2), Limits: in.list(4)}
	}
	for i := range 1 + in.below(3) {
		spec.Containers = append(spec.Containers, container(fmt.Sprintf("c-%d", i), needs(in.list(2), in.list(4))))
	}
	for i := range in.below(4) {
		if resources := needs(in.list(2), in.list(4)); in.below(2) == 0 {
			spec.InitContainers = append(spec.InitContainers, container(fmt.Sprintf("i-%d", i), resources))
		} else {
			spec.InitContainers = append(spec.InitContainers, sidecar(fmt.Sprintf("s-%d", i), resources))
		}
	}
	return spec
}

// resize changes some requests and limits of containers.
func (in *input) resize(spec *corev1.PodSpec) {
	for _, containers := range [][]corev1.Container{spec.Containers, spec.InitContainers} {
		for i := range containers {
			switch in.below(4) {
			case 1:
				containers[i].Resources.Requests = in.list(2)
			case 2:
				containers[i].Resources.Limits = in.list(4)
			case 3:
				containers[i].Resources = needs(nil, nil)
			}
		}
	}
}

// extremes are quantities at and beyond the bounds of an int64, in units and in
// thousandths, and very small ones.
var extremes = []string{
	"0", "1n", "1500u", "1e-100", "9223372036854775", "9223372036854775001m", "9223372036854775807m", "9223372036854775.9", "9223372036854776", "9P",
	"1E", "9E", "9223372036854775807", "8Ei", "9223372036854775807001m", "9223372036854775808", "10E", "100E", "18446744073709551616", "1e50", "1e100", "123456789e90",
}

// list generates quantities of a few steps more than the given number. Each
// resource has one format.
func (in *input) list(steps int) corev1.ResourceList {
	var list corev1.ResourceList
	for i, name := range resources {
		if in.below(2) == 0 {
			continue
		}
		n := int64(steps + in.below(6))
		if list == nil {
			list = corev1.ResourceList{}
		}
		list[name] = []resource.Quantity{
			*resource.NewMilliQuantity(n*50, resource.DecimalSI),
			*resource.NewQuantity(n<<19, resource.BinarySI),
			*resource.NewQuantity(n, resource.DecimalSI),
		}[i]
		if in.below(16) == 1 {
			sum := *resource.NewQuantity(0, list[name].Format)
			extreme := resource.MustParse(extremes[in.below(len(extremes))])
			extreme.Format = sum.Format
			sum.Add(extreme) // drops the text in the former format
			list[name] = sum
		}
	}
	return list
}
