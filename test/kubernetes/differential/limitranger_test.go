// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package differential

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

// TestLimitRanger creates and resizes Pods in Namespaces with one LimitRange.
func TestLimitRanger(t *testing.T) {
	checkGroups(t, few, generate(t, func(r *rand.Rand) scenario {
		limits := []any{randomLimit(r, "Container")}
		switch r.IntN(3) {
		case 0:
			limits = []any{randomLimit(r, "Pod")}
		case 1:
			limits = append(limits, randomLimit(r, "Pod"))
		}
		pod := podToLimit(r)
		s := scenario{Steps: []step{
			{Do: "POST limitranges", Body: object{"metadata": object{"name": "l"}, "spec": object{"limits": limits}}},
			{Do: "POST pods", Body: pod},
			{Do: "GET pods/p"},
		}}
		if r.IntN(3) == 0 {
			s.Steps = append(s.Steps, step{Do: "PATCH pods/p/resize", As: pick(r, []string{"merge", "strategic", "strategic"}), Body: resizeOf(r, pod)}, step{Do: "GET pods/p"})
		}
		return s
	}))
}

// podToLimit returns a Pod whose containers have resources or not.
func podToLimit(r *rand.Rand) object {
	spec := object{}
	for _, list := range []string{"containers", "initContainers"} {
		count := r.IntN(3)
		if list == "containers" {
			count = 1 + r.IntN(2)
		}
		var containers []any
		for i := range count {
			container := object{"name": fmt.Sprintf("%c%d", list[0], i), "image": "i"}
			if resources := randomResources(r); len(resources) > 0 {
				container["resources"] = resources
			}
			if list == "initContainers" && r.IntN(2) == 0 {
				container["restartPolicy"] = "Always"
			}
			containers = append(containers, container)
		}
		if containers != nil {
			spec[list] = containers
		}
	}
	if r.IntN(4) == 0 {
		spec["resources"] = randomResources(r)
	}
	if r.IntN(8) == 0 {
		spec["overhead"] = object{"cpu": "1", "memory": "1Gi"}
	}
	return object{"metadata": object{"name": "p"}, "spec": spec}
}

// randomResources returns requests and limits; the limits are mostly not below
// the requests.
func randomResources(r *rand.Rand) object {
	resources := object{}
	for _, name := range []string{"cpu", "memory", "ephemeral-storage", "hugepages-2Mi", "example.com/gpu"} {
		if r.IntN(3) > 0 {
			continue
		}
		amount := r.IntN(8)
		if r.IntN(2) == 0 {
			put(resources, "requests", name, amountOf(r, name, amount))
			if name != "cpu" && name != "memory" && name != "ephemeral-storage" {
				put(resources, "limits", name, resources["requests"].(object)[name])
				continue
			}
			amount += r.IntN(4)
		}
		if r.IntN(2) == 0 {
			put(resources, "limits", name, amountOf(r, name, amount))
		}
	}
	return resources
}

// put sets an entry of a nested object.
func put(o object, field, name string, value any) {
	inner, _ := o[field].(object)
	if inner == nil {
		inner = object{}
		o[field] = inner
	}
	inner[name] = value
}

// resizeOf returns a patch that changes the resources of a container of the
// Pod.
func resizeOf(r *rand.Rand, pod object) object {
	list := pick(r, []string{"containers", "containers", "initContainers"})
	spec := pod["spec"].(object)
	containers, _ := spec[list].([]any)
	if r.IntN(6) == 0 || len(containers) == 0 {
		return object{"spec": object{"resources": randomResources(r)}}
	}
	changed := clone(containers)
	container := pick(r, changed).(object)
	container["resources"] = randomResources(r)
	return object{"spec": object{list: changed}}
}
