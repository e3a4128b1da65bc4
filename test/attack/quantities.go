// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package attack

import (
	"fmt"
	"strings"
)

// hostileQuantities are what a small text can stand for: more digits than there
// is memory for, and what an int64 can't hold.
var hostileQuantities = []string{
	"1e30000000", "1e-30000000", "-1e10000000", "1e9223372036854775807", "1e-9223372036854775808", "1e99999999999999999999",
	"100E", "8Ei", "9223372036854775808", "-9223372036854775809", "0.0000000000001",
	strings.Repeat("9", 20000), "0." + strings.Repeat("0", 20000) + "1", "1e" + strings.Repeat("0", 20000) + "1",
}

// quantities has hostile quantities in every place that takes one.
func quantities(p paths) (requests []Request) {
	for i, hostile := range hostileQuantities {
		name := hostile[:min(len(hostile), 24)]
		for _, b := range p.bases() {
			for _, at := range slots(b.body) {
				// All places are tried with one that is large and one that is small,
				// some places with all.
				if !isQuantity(at) || i > 1 && !strings.Contains(at.String(), "memory") && !strings.Contains(at.String(), "max") {
					continue
				}
				requests = append(requests, b.request(fmt.Sprintf("%s at %s", name, at), at.replace(b.body, hostile)))
			}
		}
		two := list{withLimit(0, hostile), withLimit(1, "1")}
		requests = append(requests,
			post("two containers, "+name, p.pods()+dryRun, object("Pod", "p", obj{"spec": obj{"containers": two}})),
			post("two large containers, "+name, p.pods()+dryRun, object("Pod", "p", obj{"spec": obj{"containers": list{two[0], withLimit(1, hostile)}}})),
			post("number without quotes, "+name, p.pods()+dryRun, []byte(strings.ReplaceAll(string(asBytes(
				object("Pod", "p", obj{"spec": obj{"containers": list{two[0]}}}))), `"`+hostile+`"`, hostile))),
			post("name of hugepages, "+name, p.pods()+dryRun, object("Pod", "p", obj{"spec": obj{"containers": list{
				obj{"name": "c", "image": "i:1", "resources": obj{"limits": obj{"hugepages-" + hostile[:min(len(hostile), 50)]: "10E", "cpu": "1"}}}}}})),
		)
	}
	return class("quantities", requests)
}

func withLimit(i int, memory string) obj {
	c := container(i)
	c["resources"] = obj{"limits": obj{"memory": memory}}
	return c
}

// isQuantity returns whether a place holds a quantity.
func isQuantity(s slot) bool {
	if _, text := s.value.(string); !text || len(s.path) < 2 {
		return false
	}
	switch last := s.path[len(s.path)-1]; last {
	case "sizeLimit", "divisor":
		return true
	default:
		switch s.path[len(s.path)-2] {
		case "limits", "requests", "overhead", "max", "min", "default", "defaultRequest", "maxLimitRequestRatio", "allocatedResources":
			return true
		}
		return false
	}
}
