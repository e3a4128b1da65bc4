// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package attack

import (
	"fmt"
	"net/http"
	"strings"
)

// Bodies of these sizes are small enough that hundreds can be sent, and large
// enough that anything quadratic stands out.
const (
	manyEntries = 3_000
	longText    = 200_000
)

// sizes has many or long values wherever there can be some, and values that
// multiply each other.
func sizes(p paths) (requests []Request) {
	for _, b := range p.bases() {
		for _, at := range slots(b.body) {
			add := func(what string, value any) {
				requests = append(requests, b.request(fmt.Sprintf("%s at %s", what, at), at.replace(b.body, value)))
			}
			switch value := at.value.(type) {
			case list:
				add("one entry many times", many(manyEntries, func(int) any { return value[0] }))
				add("many empty entries", many(manyEntries, func(int) any {
					if _, object := value[0].(obj); object {
						return obj{}
					}
					return ""
				}))
				if entry, object := value[0].(obj); object && entry["name"] != nil {
					add("many names", many(manyEntries, func(i int) any { return (slot{path: []any{"name"}}).replace(entry, fmt.Sprint("n", i)) }))
				}
			case obj:
				keys := obj{}
				for i := range manyEntries {
					keys[fmt.Sprint("example.com/k", i)] = "1"
				}
				add("many keys", keys)
			case string:
				add("long text", strings.Repeat("a", longText))
			}
		}
	}
	return class("sizes", append(requests, products(p)...))
}

// products have much of one thing meet much of another.
func products(p paths) (requests []Request) {
	create := func(name string, spec obj) Request {
		return post(name, p.pods()+dryRun, object("Pod", "p", obj{"spec": spec}))
	}
	stored := func(name string, items list) {
		requests = append(requests, post("store "+name, p.limitRanges(), object("LimitRange", "stored", obj{"spec": obj{"limits": items}})))
	}
	remove := func() {
		requests = append(requests, Request{Name: "remove what was stored", Method: http.MethodDelete, Path: p.limitRanges() + "/stored"})
	}
	types := func(n int, types string) list {
		return many(n, func(i int) any {
			return obj{"type": fmt.Sprint(types, i), "max": obj{"cpu": "1"}}
		})
	}
	resources := func(n int) obj {
		o := obj{}
		for i := range n {
			o[fmt.Sprint("example.com/r", i)] = "1"
		}
		return o
	}

	for _, n := range []int{100, 1_000, 8_000, 20_000} {
		requests = append(requests,
			create(fmt.Sprint(n, " containers"), obj{"containers": many(n, container)}),
			create(fmt.Sprint(n, " invalid containers"), obj{"containers": many(n, func(int) any { return obj{"name": "C"} })}),
			create(fmt.Sprint(n, " empty containers"), obj{"containers": many(n, func(int) any { return obj{} })}),
		)
	}
	for _, n := range []int{100, 1_000, 15_000} {
		stored(fmt.Sprint(n, " types"), types(n, "a/t"))
		requests = append(requests, post(fmt.Sprint(n, " types against as many"), p.limitRanges()+dryRun, object("LimitRange", "l", obj{"spec": obj{"limits": types(n, "a/t")}})))
		requests = append(requests, post(fmt.Sprint(n, " other types"), p.limitRanges()+dryRun, object("LimitRange", "l", obj{"spec": obj{"limits": types(n, "b/t")}})))
		remove()
	}
	for _, n := range []int{30, 100, 1_000} {
		stored(fmt.Sprint(n, " defaults"), list{obj{"type": "Container", "default": resources(n), "defaultRequest": resources(n)}})
		requests = append(requests, create(fmt.Sprint(n, " containers that get defaults"), obj{"containers": many(n, container)}))
		remove()
		stored(fmt.Sprint(n, " bounds"), list{obj{"type": "Container", "min": resources(n)}})
		requests = append(requests, create(fmt.Sprint(n, " containers that break bounds"), obj{"containers": many(n, container)}))
		remove()
	}
	// Entries of a list that are merged by a key, all with one key.
	for _, same := range []struct {
		name string
		spec func(int) obj
	}{
		{"environment", func(i int) obj {
			return obj{"env": many(i, func(i int) any { return obj{"name": "A", "value": fmt.Sprint(i)} })}
		}},
		{"ports", func(i int) obj {
			return obj{"ports": many(i, func(i int) any { return obj{"containerPort": 80, "name": fmt.Sprint("p", i)} })}
		}},
		{"mounts", func(i int) obj {
			return obj{"volumeMounts": many(i, func(i int) any { return obj{"mountPath": "/a", "name": fmt.Sprint("v", i)} })}
		}},
		{"devices", func(i int) obj {
			return obj{"volumeDevices": many(i, func(i int) any { return obj{"devicePath": "/a", "name": fmt.Sprint("v", i)} })}
		}},
	} {
		c := same.spec(manyEntries)
		c["name"], c["image"] = "c0", "i:1"
		put := post(same.name+" with one key", p.pod()+dryRun, object("Pod", "there", obj{"spec": obj{"containers": list{c}}}))
		put.Method = http.MethodPut
		requests = append(requests, create(put.Name, obj{"containers": list{c}}), put)
	}
	for _, same := range []struct {
		name string
		spec obj
	}{
		{"volumes", obj{"volumes": many(manyEntries, func(i int) any { return obj{"name": "v", "hostPath": obj{"path": fmt.Sprint("/", i)}} })}},
		{"aliases of hosts", obj{"hostAliases": many(manyEntries, func(i int) any { return obj{"ip": "10.0.0.1", "hostnames": list{fmt.Sprint("h", i)}} })}},
		{"spread constraints", obj{"topologySpreadConstraints": many(manyEntries, func(i int) any {
			return obj{"topologyKey": "k", "whenUnsatisfiable": "DoNotSchedule", "maxSkew": i + 1}
		})}},
		{"claims", obj{"resourceClaims": many(manyEntries, func(i int) any { return obj{"name": "c", "resourceClaimName": fmt.Sprint("n", i)} })}},
		{"containers", obj{"containers": many(1_000, func(i int) any { return obj{"name": "c", "image": fmt.Sprint("i:", i)} })}},
	} {
		if same.spec["containers"] == nil {
			same.spec["containers"] = list{container(0)}
		}
		requests = append(requests, create(same.name+" with one key", same.spec))
	}
	owners := object("LimitRange", "there", nil)
	owners["metadata"] = obj{"name": "there", "ownerReferences": many(manyEntries, func(i int) any { return obj{"apiVersion": "v1", "kind": "K", "name": fmt.Sprint("n", i), "uid": "u"} })}
	owned := post("owners with one UID", p.limitRange()+dryRun, owners)
	owned.Method = http.MethodPut
	requests = append(requests, owned)

	each := func(n, m int, key string, value func(int) any) obj {
		return obj{"containers": many(n, func(i int) any {
			c := container(i)
			c[key] = many(m, value)
			return c
		})}
	}
	return append(requests,
		create("mounts of volumes that are not there", each(100, 100, "volumeMounts", func(i int) any { return obj{"name": fmt.Sprint("v", i), "mountPath": "/v"} })),
		create("host ports", each(100, 100, "ports", func(i int) any { return obj{"containerPort": i + 1, "hostPort": i + 1} })),
		create("invalid environment", each(100, 100, "env", func(int) any { return obj{"name": "=", "value": "$(A)"} })),
		create("long names that are quoted", obj{"containers": many(300, func(int) any { return obj{"name": strings.Repeat("x", 1000), "image": " "} })}),
		post("generateName", p.pods()+dryRun, obj{"metadata": obj{"generateName": strings.Repeat("a", longText)}, "spec": obj{"containers": list{container(0)}}}),
		post("as large as possible", p.pods()+dryRun, object("Pod", "p", obj{"spec": obj{"containers": many(3<<20/32, container)}})),
		post("too large", p.pods()+dryRun, object("Pod", "p", obj{"spec": obj{"nodeName": strings.Repeat("a", 4<<20)}})),
	)
}
