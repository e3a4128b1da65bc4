// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package storm

import (
	"fmt"
	"math/rand/v2"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
)

// absent is a name that is never created.
const absent = "absent"

// path is a way to write.
type path struct {
	name     string
	resource string
	creates  bool
	request  func(client rest.Interface, at target) *rest.Request
}

// target is the object of a request.
type target struct {
	namespace, name string
	label           string // a label value, so that a write changes something
}

// paths are the ways to write content, and to relabel a Namespace.
var paths = []path{
	{"POST Pod", "pods", true, func(client rest.Interface, at target) *rest.Request {
		return post(client, at, "pods", pod(at, "name"))
	}},
	{"POST Pod, generateName", "pods", true, func(client rest.Interface, at target) *rest.Request {
		return post(client, at, "pods", pod(at, "generateName"))
	}},
	{"apply Pod", "pods", true, func(client rest.Interface, at target) *rest.Request {
		return apply(client, at, "pods", pod(at, "name"))
	}},
	{"POST LimitRange", "limitranges", true, func(client rest.Interface, at target) *rest.Request {
		return post(client, at, "limitranges", limitRange(at))
	}},
	{"PUT LimitRange", "limitranges", true, func(client rest.Interface, at target) *rest.Request {
		return withJSON(client.Put().Namespace(at.namespace).Resource("limitranges").Name(at.name), limitRange(at))
	}},
	{"apply LimitRange", "limitranges", true, func(client rest.Interface, at target) *rest.Request {
		return apply(client, at, "limitranges", limitRange(at))
	}},

	{"POST Pod binding", "pods", false, func(client rest.Interface, at target) *rest.Request {
		body := manifest("Binding", "name", at, `"target": {"kind": "Node", "name": "node"}`)
		return withJSON(client.Post().Namespace(at.namespace).Resource("pods").Name(at.name).SubResource("binding"), body)
	}},
	{"apply Pod status", "pods", false, func(client rest.Interface, at target) *rest.Request {
		body := manifest("Pod", "name", at, fmt.Sprintf(`"status": {"message": %q}`, at.label))
		return apply(client, at, "pods", body).SubResource("status")
	}},
	{"apply Pod resize", "pods", false, func(client rest.Interface, at target) *rest.Request {
		body := manifest("Pod", "name", at, `"spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": "1m"}}}]}`)
		return apply(client, at, "pods", body).SubResource("resize")
	}},
	{"apply Pod ephemeralcontainers", "pods", false, func(client rest.Interface, at target) *rest.Request {
		body := manifest("Pod", "name", at, `"spec": {"ephemeralContainers": [{"name": "e", "image": "image"}]}`)
		return apply(client, at, "pods", body).SubResource("ephemeralcontainers")
	}},

	{"relabel Namespace", "namespaces", false, func(client rest.Interface, at target) *rest.Request {
		return client.Patch(types.MergePatchType).Resource("namespaces").Name(at.namespace).
			Body(fmt.Appendf(nil, `{"metadata": {"labels": {"storm": %q}}}`, at.label))
	}},
}

// choose chooses a path and a target. Most of its choices create objects.
func choose(r *rand.Rand, namespaces []string) (path, target) {
	at := target{
		namespace: namespaces[r.IntN(len(namespaces))],
		name:      fmt.Sprintf("shared-%d", r.IntN(8)),
		label:     fmt.Sprint(r.Uint32()),
	}
	p := paths[r.IntN(len(paths))]
	for !p.creates && r.IntN(2) > 0 {
		p = paths[r.IntN(len(paths))]
	}
	switch {
	case p.creates && r.IntN(4) > 0:
		at.name = "own-" + at.label
	case !p.creates && r.IntN(4) == 0:
		at.name = absent
	}
	return p, at
}

func post(client rest.Interface, at target, resource, body string) *rest.Request {
	return withJSON(client.Post().Namespace(at.namespace).Resource(resource), body)
}

func withJSON(request *rest.Request, body string) *rest.Request {
	return request.SetHeader("Content-Type", "application/json").Body([]byte(body))
}

func apply(client rest.Interface, at target, resource, body string) *rest.Request {
	return client.Patch(types.ApplyYAMLPatchType).Namespace(at.namespace).Resource(resource).Name(at.name).
		Param("fieldManager", "storm").Param("force", "true").Body([]byte(body))
}

// pod returns a Pod without a grace period, bound to a node or not.
func pod(at target, nameField string) string {
	return manifest("Pod", nameField, at, `"spec": {
		"terminationGracePeriodSeconds": 0,
		"containers": [{"name": "c", "image": "image", "resources": {"requests": {"cpu": "1m"}}}]
	}`)
}

func limitRange(at target) string {
	return manifest("LimitRange", "name", at, `"spec": {"limits": [{"type": "Container", "default": {"cpu": "1"}}]}`)
}

func manifest(kind, nameField string, at target, rest string) string {
	return fmt.Sprintf(`{"apiVersion": "tenancy.borough.io/v1", "kind": %q, "metadata": {%q: %q, "labels": {"storm": %q}}, %s}`,
		kind, nameField, at.name, at.label, rest)
}
