// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package attack

import (
	"fmt"
	"net/http"
	"strings"
)

// patches has patches of all types that produce large results from small input, or
// invalid objects. Those whose name begins with a star fit every kind.
func patches(p paths) (requests []Request) {
	add := func(name, contentType string, patch any) {
		name, all := strings.CutPrefix(name, "*")
		for _, to := range []struct{ what, path string }{{"Pod", p.pod()}, {"LimitRange", p.limitRange()}, {"ResourceQuota", p.quota()}, {"Namespace", p.in()}} {
			if to.what != "Pod" && !all {
				continue
			}
			query := dryRun
			if contentType == asApply || contentType == asApplyCBOR {
				query += "&fieldManager=attack&force=true"
			}
			requests = append(requests, Request{Name: name + " to a " + to.what, Method: http.MethodPatch, Path: to.path + query, Header: typed(contentType), Body: asBytes(patch)})
		}
	}
	jsonPatches(add)
	merges(p, add)
	applies(p, add)
	return class("patches", requests)
}

func jsonPatches(add func(name, contentType string, patch any)) {
	op := func(op, path string, more obj) obj {
		o := obj{"op": op, "path": path}
		for key, value := range more {
			o[key] = value
		}
		return o
	}
	const annotations = "/metadata/annotations"
	for _, n := range []int{15, 30, 5_000} { // each copy is twice as large as the one before
		bomb := list{op("add", annotations, obj{"value": obj{"k0": strings.Repeat("x", 100)}})}
		nested := list{op("add", "/spec/nodeSelector", obj{"value": obj{"a": "b"}})}
		for i := range n {
			bomb = append(bomb, op("copy", fmt.Sprint(annotations, "/k", i+1), obj{"from": annotations}))
			nested = append(nested, op("copy", "/spec/nodeSelector/a", obj{"from": "/spec"}))
		}
		add(fmt.Sprint("*", n, " copies"), asJSONPatch, bomb)
		add(fmt.Sprint(n, " copies of all into itself"), asJSONPatch, nested)
		add(fmt.Sprint("*", n, " moves"), asJSONPatch, many(n, func(i int) any {
			return op("move", fmt.Sprint("/metadata/labels", i+1), obj{"from": fmt.Sprint("/metadata/labels", i)})
		}))
	}
	for _, n := range []int{1_000, 9_999, 10_001} {
		add(fmt.Sprint("*", n, " tests"), asJSONPatch, many(n, func(int) any { return op("test", "/metadata/name", obj{"value": "there"}) }))
		add(fmt.Sprint(n, " containers, each in front"), asJSONPatch, many(n, func(i int) any { return op("add", "/spec/containers/0", obj{"value": container(i)}) }))
		add(fmt.Sprint(n, " labels"), asJSONPatch, append(list{op("add", "/metadata/labels", obj{"value": obj{}})}, many(n, func(i int) any { return op("add", fmt.Sprint("/metadata/labels/l", i), obj{"value": "v"}) })...))
	}
	for _, path := range []string{"", "/", "//", "/-", "/spec/containers/-1", "/spec/containers/99999999999999999999", "/spec/containers/1e9", "/metadata/labels/~2", "/metadata/labels/~", "spec", "/spec/containers/00", "/metadata/managedFields", "/apiVersion", "/kind", "/metadata/uid"} {
		for _, what := range []string{"add", "remove", "replace", "test", "copy", "move", "nonsense", ""} {
			add(fmt.Sprintf("%s at %q", what, path), asJSONPatch, list{op(what, path, obj{"value": obj{}, "from": path})})
		}
	}
	for _, hostile := range hostileQuantities[:8] {
		add("quantity "+hostile, asJSONPatch, list{op("add", "/spec/containers/0/resources", obj{"value": obj{"limits": obj{"memory": hostile}}})})
	}
	add("operations that are none", asJSONPatch, []byte(`[null,1,"a",[],{"op":1},{"op":"add","path":null}]`))
}

func merges(p paths, add func(name, contentType string, patch any)) {
	containers := func(n int, of func(int) obj) obj { return obj{"spec": obj{"containers": many(n, of)}} }
	for _, n := range []int{1_000, 20_000} {
		for _, contentType := range []string{asMerge, asStrategic} {
			add(fmt.Sprint(n, " containers"), contentType, containers(n, container))
			add(fmt.Sprint(n, " times the same container"), contentType, containers(n, func(int) obj { return container(0) }))
			add(fmt.Sprint(n, " tolerations"), contentType, obj{"spec": obj{"tolerations": many(n, func(int) any { return obj{"operator": "Exists"} })}})
			add(fmt.Sprint("*", n, " labels"), contentType, obj{"metadata": obj{"labels": numberedKeys(n, "v")}})
			add(fmt.Sprint("*", n, " labels that go"), contentType, obj{"metadata": obj{"labels": numberedKeys(n, nil)}})
		}
		add(fmt.Sprint(n, " containers that go"), asStrategic, containers(n, func(i int) obj { return obj{"name": fmt.Sprint("c", i+1), "$patch": "delete"} }))
		add(fmt.Sprint(n, " containers in order"), asStrategic, obj{"spec": obj{
			"containers": many(n, container), "$setElementOrder/containers": many(n, func(i int) any { return obj{"name": fmt.Sprint("c", n-1-i)} })}})
		add(fmt.Sprint(n, " names in an order"), asStrategic, obj{"spec": obj{"$setElementOrder/containers": many(n, func(i int) any { return obj{"name": fmt.Sprint("c", i)} })}})
		add(fmt.Sprint(n, " finalizers that go"), asStrategic, obj{"metadata": obj{"$deleteFromPrimitiveList/finalizers": many(n, func(i int) any { return fmt.Sprint("f", i) })}})
		add(fmt.Sprint("*", n, " finalizers in order"), asStrategic, obj{"metadata": obj{
			"finalizers": many(n, func(i int) any { return fmt.Sprint("e/f", i) }), "$setElementOrder/finalizers": many(n, func(i int) any { return fmt.Sprint("e/f", n-1-i) })}})
		add(fmt.Sprint(n, " keys that are kept"), asStrategic, obj{"spec": obj{"affinity": obj{"$retainKeys": many(n, func(i int) any { return fmt.Sprint("k", i) })}}})
	}
	for _, hostile := range hostileQuantities[:8] {
		for _, contentType := range []string{asMerge, asStrategic} {
			add("quantity "+hostile, contentType, obj{"spec": obj{"containers": list{withLimit(0, hostile), withLimit(1, "1")}}})
		}
	}
	for _, directive := range []any{
		obj{"$patch": "nonsense"}, obj{"$patch": "replace"}, obj{"$patch": "delete"}, obj{"$patch": obj{}}, obj{"$patch": 1}, obj{"$retainKeys": "a"}, obj{"$retainKeys": list{1}},
		list{obj{"$patch": "replace"}}, list{obj{"$patch": "merge"}}, list{obj{"$patch": "delete"}}, list{nil}, list{1}, list{list{}}, list{obj{}}, list{obj{"name": nil}}, list{obj{"name": obj{}}}, list{obj{"name": 1}}, 1, "a", true, nil,
	} {
		text := string(asBytes(directive))
		for _, contentType := range []string{asMerge, asStrategic} {
			add("*"+text+" in place of all", contentType, directive)
			add("*"+text+" in place of the metadata", contentType, obj{"metadata": directive})
			add(text+" in place of the spec", contentType, obj{"spec": directive})
			add(text+" in place of containers", contentType, obj{"spec": obj{"containers": directive}})
			add(text+" in place of an order", contentType, obj{"spec": obj{"$setElementOrder/containers": directive}})
			add(text+" in place of what goes", contentType, obj{"metadata": obj{"$deleteFromPrimitiveList/finalizers": directive}})
		}
	}
	add("UID of another", asMerge, obj{"metadata": obj{"uid": "x", "resourceVersion": "999999999999999999999"}})
}

func applies(p paths, add func(name, contentType string, patch any)) {
	for _, n := range []int{1_000, 20_000} {
		add(fmt.Sprint(n, " containers"), asApply, object("Pod", "there", obj{"spec": obj{"containers": many(n, container)}}))
		add(fmt.Sprint(n, " times the same container"), asApply, object("Pod", "there", obj{"spec": obj{"containers": many(n, func(int) any { return container(0) })}}))
		add(fmt.Sprint(n, " ports without their key"), asApply, object("Pod", "there", obj{"spec": obj{"containers": list{obj{"name": "c0", "ports": many(n, func(int) any { return obj{} })}}}}))
		add(fmt.Sprint(n, " labels"), asApply, object("Pod", "there", obj{"metadata": obj{"labels": numberedKeys(n, "v")}}))
		add(fmt.Sprint(n, " unknown fields"), asApply, object("Pod", "there", obj{"spec": numberedKeys(n, 1)}))
	}
	for _, hostile := range hostileQuantities[:8] {
		pod := object("Pod", "there", obj{"spec": obj{"containers": list{withLimit(0, hostile), withLimit(1, "1")}}})
		add("quantity "+hostile, asApply, pod)
		add("quantity "+hostile+" in CBOR", asApplyCBOR, []byte(asCBORBytes(pod)))
	}
	for _, fields := range []any{
		nil, 1, "a", list{}, obj{}, obj{"f:": obj{}}, obj{"nonsense": obj{}}, obj{"f:spec": 1}, obj{"f:spec": list{}}, obj{".": obj{}}, obj{"k:{": obj{}}, obj{"k:{}": obj{}}, obj{`k:{"name":1e999}`: obj{}},
		obj{"v:": obj{}}, obj{"v:{": obj{}}, obj{"i:-1": obj{}}, obj{"i:99999999999999999999": obj{}}, obj{"f:spec": obj{"f:containers": obj{"i:0": obj{}, `k:{"name":"c0"}`: obj{".": obj{}}, "v:1": obj{}}}},
		numberedKeys(3_000, obj{}),
	} {
		entry := obj{"manager": "m", "operation": "Apply", "apiVersion": groupVersion, "fieldsType": "FieldsV1", "fieldsV1": fields}
		name := string(asBytes(fields))
		for _, contentType := range []string{asMerge, asJSONPatch, asApply} {
			metadata := obj{"name": "there", "managedFields": list{entry}}
			if contentType == asJSONPatch {
				add("managedFields "+name[:min(len(name), 40)], contentType, list{obj{"op": "add", "path": "/metadata/managedFields", "value": list{entry}}})
				continue
			}
			add("managedFields "+name[:min(len(name), 40)], contentType, obj{"apiVersion": groupVersion, "kind": "Pod", "metadata": metadata})
		}
	}
	for _, entry := range []obj{
		{}, {"operation": "nonsense"}, {"apiVersion": "nonsense/v9/x"}, {"apiVersion": "v1"}, {"time": "x"}, {"manager": strings.Repeat("m", longText)}, {"subresource": strings.Repeat("s", longText)}, {"fieldsType": "FieldsV2"},
	} {
		for key, value := range (obj{"manager": "m", "operation": "Update", "apiVersion": groupVersion, "fieldsType": "FieldsV1", "fieldsV1": obj{"f:spec": obj{}}}) {
			if _, set := entry[key]; !set && len(entry) > 0 {
				entry[key] = value
			}
		}
		name := string(asBytes(entry))
		add("*entry of managedFields "+name[:min(len(name), 40)], asMerge, obj{"metadata": obj{"managedFields": list{entry}}})
		add("*a thousand of "+name[:min(len(name), 40)], asMerge, obj{"metadata": obj{"managedFields": many(1_000, func(i int) any {
			return (slot{path: []any{"manager"}}).replace(entry, fmt.Sprint("m", i))
		})}})
	}
}

// numberedKeys is an object with n keys.
func numberedKeys(n int, value any) obj {
	o := obj{}
	for i := range n {
		o[fmt.Sprint("k", i)] = value
	}
	return o
}
