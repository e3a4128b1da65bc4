// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package attack

import (
	"encoding/json"
	"fmt"
	"net/http"
)

const (
	asJSON  = "application/json"
	asYAML  = "application/yaml"
	asCBOR  = "application/cbor"
	asProto = "application/vnd.kubernetes.protobuf"

	asJSONPatch  = "application/json-patch+json"
	asMerge      = "application/merge-patch+json"
	asStrategic  = "application/strategic-merge-patch+json"
	asApply      = "application/apply-patch+yaml"
	asApplyCBOR  = "application/apply-patch+cbor"
	groupVersion = "tenancy.borough.io/v1"
	api          = "/apis/" + groupVersion

	// dryRun keeps what is sent out of etcd, which is not what is attacked.
	dryRun = "?dryRun=All"
)

// obj and list are JSON.
type (
	obj  = map[string]any
	list = []any
)

// paths are where things are.
type paths struct{ namespace string }

func (p paths) in() string          { return api + "/namespaces/" + p.namespace }
func (p paths) pods() string        { return p.in() + "/pods" }
func (p paths) pod() string         { return p.pods() + "/there" }
func (p paths) limitRanges() string { return p.in() + "/limitranges" }
func (p paths) limitRange() string  { return p.limitRanges() + "/there" }
func (p paths) quotas() string      { return p.in() + "/resourcequotas" }
func (p paths) quota() string       { return p.quotas() + "/there" }

// Prepare returns the requests that make a Namespace and what the others are
// about in it.
func Prepare(namespace string) []Request {
	p := paths{namespace}
	return []Request{
		post("Namespace", api+"/namespaces", object("Namespace", p.namespace, nil)),
		post("Pod", p.pods(), object("Pod", "there", obj{"spec": obj{"containers": list{container(0)}}})),
		post("LimitRange", p.limitRanges(), object("LimitRange", "there", obj{"spec": obj{"limits": list{limits("Container")}}})),
		post("ResourceQuota", p.quotas(), object("ResourceQuota", "there", obj{"spec": obj{"hard": obj{"pods": "1000000", "count/pods": "1000000"}}})),
	}
}

// object returns an object with its kind and name, and what more it has.
func object(kind, name string, more obj) obj {
	o := obj{"apiVersion": groupVersion, "kind": kind, "metadata": obj{"name": name}}
	for key, value := range more {
		o[key] = value
	}
	return o
}

func container(i int) obj { return obj{"name": fmt.Sprint("c", i), "image": "i:1"} }

// limits is an item of a LimitRange that bounds nothing that an ordinary Pod
// asks for.
func limits(kind string) obj {
	return obj{"type": kind, "max": obj{"cpu": "1000", "memory": "1Ti"}, "min": obj{"cpu": "0"}}
}

// many returns n values.
func many[T any](n int, value func(int) T) []any {
	values := make([]any, n)
	for i := range values {
		values[i] = value(i)
	}
	return values
}

// ordinary is a valid request with so many containers.
func ordinary(p paths, containers int) Request {
	return Request{
		Class: "ordinary", Name: fmt.Sprint(containers, " containers"), Method: http.MethodPost, Path: p.pods() + dryRun, Header: typed(asJSON),
		Body: asBytes(object("Pod", "ordinary", obj{"spec": obj{"containers": many(containers, container)}})),
	}
}

func post(name, path string, body any) Request {
	return Request{Name: name, Method: http.MethodPost, Path: path, Header: typed(asJSON), Body: asBytes(body)}
}

func typed(contentType string) http.Header { return http.Header{"Content-Type": {contentType}} }

// asBytes encodes a value as JSON; bytes are what they are.
func asBytes(value any) []byte {
	if data, ok := value.([]byte); ok {
		return data
	}
	data, err := json.Marshal(value)
	if err != nil {
		panic(fmt.Sprintf("encode %T: %v", value, err)) // obj and list always can be
	}
	return data
}

// class sets the class of requests.
func class(name string, requests []Request) []Request {
	for i := range requests {
		requests[i].Class = name
	}
	return requests
}

// base is a request that is valid, or nearly, from which others are made.
type base struct {
	name, method, path string
	body               any
}

func (b base) request(name string, body any) Request {
	return Request{Name: b.name + ", " + name, Method: b.method, Path: b.path, Header: typed(asJSON), Body: asBytes(body), Variant: true}
}

// bases are one request for each way into the server that takes a body.
func (p paths) bases() []base {
	options := obj{"gracePeriodSeconds": 0, "preconditions": obj{"uid": "0", "resourceVersion": "1"}, "propagationPolicy": "Background", "dryRun": list{"All"}}
	ephemeral := object("Pod", "there", obj{"spec": obj{"containers": list{container(0)}, "ephemeralContainers": list{container(1)}}})
	return []base{
		{"create a Pod", "POST", p.pods() + dryRun, richPod("p")},
		{"replace a Pod", "PUT", p.pod() + dryRun, richPod("there")},
		{"status of a Pod", "PUT", p.pod() + "/status" + dryRun, object("Pod", "there", obj{"spec": obj{"containers": list{container(0)}}, "status": richStatus()})},
		{"resize a Pod", "PUT", p.pod() + "/resize" + dryRun, object("Pod", "there", obj{"spec": obj{"containers": list{withResources(0)}}})},
		{"ephemeral containers", "PUT", p.pod() + "/ephemeralcontainers" + dryRun, ephemeral},
		{"bind a Pod", "POST", p.pod() + "/binding" + dryRun, object("Binding", "there", obj{"target": obj{"kind": "Node", "name": "n", "namespace": "x", "fieldPath": "f"}})},
		{"create a LimitRange", "POST", p.limitRanges() + dryRun, richLimitRange("l")},
		{"replace a LimitRange", "PUT", p.limitRange() + dryRun, richLimitRange("there")},
		{"create a ResourceQuota", "POST", p.quotas() + dryRun, richQuota("q")},
		{"replace a ResourceQuota", "PUT", p.quota() + dryRun, richQuota("there")},
		{"create a Namespace", "POST", api + "/namespaces" + dryRun, richNamespace("n")},
		{"replace a Namespace", "PUT", p.in() + dryRun, richNamespace(p.namespace)},
		{"status of a Namespace", "PUT", p.in() + "/status" + dryRun, richNamespace(p.namespace)},
		{"finalize a Namespace", "PUT", p.in() + "/finalize" + dryRun, richNamespace(p.namespace)},
		{"purge a Namespace", "POST", p.in() + "/namespacepurges" + dryRun, object("NamespacePurge", p.namespace, obj{"spec": obj{"namespaceUID": "0"}})},
		{"request a Namespace", "POST", api + "/namespacerequests" + dryRun, obj{"apiVersion": groupVersion, "kind": "NamespaceRequest", "metadata": obj{"name": "n", "labels": obj{"a": "b"}, "annotations": obj{"c": "d"}}}},
		{"create a NamespaceTemplate", "POST", api + "/namespacetemplates" + dryRun, richTemplate("t")},
		{"delete a Pod", "DELETE", p.pods() + "/not-there" + dryRun, options},
		{"delete Pods", "DELETE", p.pods() + dryRun + "&labelSelector=not%3Dthere", options},
		{"delete a Namespace", "DELETE", api + "/namespaces/not-there" + dryRun, options},
	}
}

func meta(name string) obj {
	return obj{
		"name": name, "labels": obj{"a": "b"}, "annotations": obj{"c": "d"}, "finalizers": list{"example.com/f"},
		"ownerReferences": list{obj{"apiVersion": "v1", "kind": "K", "name": "n", "uid": "u"}},
		"managedFields":   list{obj{"manager": "m", "operation": "Update", "apiVersion": groupVersion, "time": "2026-01-01T00:00:00Z", "fieldsType": "FieldsV1", "fieldsV1": obj{"f:spec": obj{"f:a": obj{}}}}},
	}
}

func richNamespace(name string) obj {
	return obj{"apiVersion": groupVersion, "kind": "Namespace", "metadata": meta(name),
		"spec":   obj{"finalizers": list{"kubernetes"}},
		"status": obj{"phase": "Active", "conditions": list{obj{"type": "T", "status": "True", "reason": "R", "message": "m", "lastTransitionTime": "2026-01-01T00:00:00Z"}}},
	}
}

func richQuota(name string) obj {
	return obj{"apiVersion": groupVersion, "kind": "ResourceQuota", "metadata": meta(name), "spec": obj{
		"hard": obj{"pods": "10", "cpu": "1", "requests.memory": "1Gi", "requests.example.com/r": "1", "count/pods": "10"},
		"scopeSelector": obj{"matchExpressions": list{
			obj{"scopeName": "PriorityClass", "operator": "In", "values": list{"high"}},
			obj{"scopeName": "NotTerminating", "operator": "Exists"},
		}},
	}}
}

func richTemplate(name string) obj {
	part := func(rich obj) obj {
		return obj{"metadata": obj{"name": "there", "labels": obj{"a": "b"}, "annotations": obj{"c": "d"}}, "spec": rich["spec"]}
	}
	return obj{"apiVersion": groupVersion, "kind": "NamespaceTemplate", "metadata": meta(name), "spec": obj{
		"namespaceSelector": obj{
			"matchLabels":      obj{"a": "not-there"},
			"matchExpressions": list{obj{"key": "a", "operator": "In", "values": list{"not-there"}}},
		},
		"limitRange":    part(richLimitRange("")),
		"resourceQuota": part(richQuota("")),
		"roleBinding": obj{"metadata": obj{"name": "there"}, "subjects": list{obj{"kind": "User", "name": "u"}},
			"roleRef": obj{"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "view"}},
	}}
}

func richLimitRange(name string) obj {
	resources := func(q string) obj { return obj{"cpu": q, "memory": q, "example.com/r": q} }
	item := func(kind string) obj {
		return obj{"type": kind, "max": resources("10"), "min": resources("1"), "default": resources("5"), "defaultRequest": resources("2"), "maxLimitRequestRatio": resources("5")}
	}
	return obj{"apiVersion": groupVersion, "kind": "LimitRange", "metadata": meta(name), "spec": obj{"limits": list{item("Container"), obj{"type": "Pod", "max": resources("20")}}}}
}

func withResources(i int) obj {
	c := container(i)
	c["resources"] = obj{
		"limits":   obj{"cpu": "2", "memory": "1Gi", "ephemeral-storage": "1Gi", "hugepages-2Mi": "4Mi", "example.com/r": "1"},
		"requests": obj{"cpu": "1", "memory": "1Gi", "hugepages-2Mi": "4Mi", "example.com/r": "1"},
		"claims":   list{obj{"name": "claim", "request": "r"}},
	}
	return c
}

// richPod has a value in most places where a Pod can have many.
func richPod(name string) obj {
	c := withResources(0)
	probe := obj{"httpGet": obj{"path": "/", "port": "p", "httpHeaders": list{obj{"name": "h", "value": "v"}}}, "periodSeconds": 1}
	for key, value := range (obj{
		"command": list{"a"}, "args": list{"$(A)"}, "workingDir": "/",
		"ports": list{obj{"name": "p", "containerPort": 80, "hostPort": 80, "protocol": "TCP"}},
		"env": list{
			obj{"name": "A", "value": "$(B)"},
			obj{"name": "B", "valueFrom": obj{"resourceFieldRef": obj{"resource": "limits.cpu", "containerName": "c0", "divisor": "1"}}},
			obj{"name": "C", "valueFrom": obj{"fieldRef": obj{"fieldPath": "metadata.labels['a']"}}},
		},
		"envFrom":        list{obj{"prefix": "P", "configMapRef": obj{"name": "m"}}},
		"volumeMounts":   list{obj{"name": "v", "mountPath": "/v"}},
		"volumeDevices":  list{obj{"name": "w", "devicePath": "/w"}},
		"resizePolicy":   list{obj{"resourceName": "cpu", "restartPolicy": "NotRequired"}},
		"livenessProbe":  probe,
		"readinessProbe": obj{"exec": obj{"command": list{"a"}}},
		"lifecycle":      obj{"preStop": obj{"exec": obj{"command": list{"a"}}}},
		"securityContext": obj{
			"capabilities": obj{"add": list{"A"}, "drop": list{"B"}}, "runAsUser": 1, "procMount": "Default",
			"appArmorProfile": obj{"type": "Localhost", "localhostProfile": "p"},
		},
	}) {
		c[key] = value
	}
	term := obj{"matchExpressions": list{obj{"key": "k", "operator": "In", "values": list{"v"}}}, "matchFields": list{obj{"key": "metadata.name", "operator": "In", "values": list{"v"}}}}
	selector := obj{"matchLabels": obj{"a": "b"}, "matchExpressions": list{obj{"key": "k", "operator": "In", "values": list{"v"}}}}
	affinity := obj{"topologyKey": "t", "labelSelector": selector, "namespaceSelector": selector, "namespaces": list{"n"}, "matchLabelKeys": list{"m"}}
	return obj{"apiVersion": groupVersion, "kind": "Pod", "metadata": meta(name), "spec": obj{
		"containers": list{c}, "initContainers": list{withResources(1)},
		"overhead": obj{"cpu": "1"}, "resources": obj{"limits": obj{"cpu": "4"}, "requests": obj{"cpu": "3"}},
		"resourceClaims":   list{obj{"name": "claim", "resourceClaimName": "n"}},
		"nodeSelector":     obj{"a": "b"},
		"imagePullSecrets": list{obj{"name": "s"}},
		"tolerations":      list{obj{"key": "k", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 1}},
		"hostAliases":      list{obj{"ip": "10.0.0.1", "hostnames": list{"h"}}},
		"readinessGates":   list{obj{"conditionType": "c"}},
		"schedulingGates":  list{obj{"name": "g"}},
		"dnsConfig":        obj{"nameservers": list{"10.0.0.1"}, "searches": list{"s"}, "options": list{obj{"name": "o", "value": "v"}}},
		"securityContext":  obj{"supplementalGroups": list{1}, "sysctls": list{obj{"name": "a.b", "value": "c"}}},
		"topologySpreadConstraints": list{
			obj{"maxSkew": 1, "topologyKey": "t", "whenUnsatisfiable": "DoNotSchedule", "labelSelector": selector, "matchLabelKeys": list{"m"}},
		},
		"affinity": obj{
			"nodeAffinity": obj{"requiredDuringSchedulingIgnoredDuringExecution": obj{"nodeSelectorTerms": list{term}}, "preferredDuringSchedulingIgnoredDuringExecution": list{obj{"weight": 1, "preference": term}}},
			"podAffinity":  obj{"requiredDuringSchedulingIgnoredDuringExecution": list{affinity}, "preferredDuringSchedulingIgnoredDuringExecution": list{obj{"weight": 1, "podAffinityTerm": affinity}}},
		},
		"volumes": list{
			obj{"name": "v", "emptyDir": obj{"sizeLimit": "1Gi"}},
			obj{"name": "w", "ephemeral": obj{"volumeClaimTemplate": obj{"spec": obj{"accessModes": list{"ReadWriteOnce"}, "resources": obj{"requests": obj{"storage": "1Gi"}}, "volumeMode": "Block"}}}},
			obj{"name": "x", "projected": obj{"sources": list{
				obj{"configMap": obj{"name": "m", "items": list{obj{"key": "k", "path": "p"}}}},
				obj{"downwardAPI": obj{"items": list{obj{"path": "p", "resourceFieldRef": obj{"containerName": "c0", "resource": "limits.cpu", "divisor": "1m"}}}}},
			}}},
		},
	}}
}

func richStatus() obj {
	state := obj{"running": obj{"startedAt": "2026-01-01T00:00:00Z"}}
	status := obj{
		"name": "c0", "image": "i:1", "imageID": "i", "containerID": "docker://i", "ready": true, "started": true, "restartCount": 1,
		"state": state, "lastState": state, "allocatedResources": obj{"cpu": "1"}, "resources": obj{"limits": obj{"cpu": "1"}, "requests": obj{"cpu": "1"}},
		"volumeMounts": list{obj{"name": "v", "mountPath": "/v"}}, "allocatedResourcesStatus": list{obj{"name": "cpu", "resources": list{obj{"resourceID": "i", "health": "Healthy"}}}},
	}
	return obj{
		"phase": "Running", "hostIP": "10.0.0.1", "hostIPs": list{obj{"ip": "10.0.0.1"}}, "podIP": "10.0.0.2", "podIPs": list{obj{"ip": "10.0.0.2"}},
		"conditions":            list{obj{"type": "Ready", "status": "True", "lastProbeTime": "2026-01-01T00:00:00Z"}},
		"containerStatuses":     list{status},
		"initContainerStatuses": list{status},
		"resourceClaimStatuses": list{obj{"name": "claim", "resourceClaimName": "n"}},
	}
}

// Bodies are those of valid requests, from which a fuzzer may start.
func Bodies() (bodies [][]byte) {
	for _, b := range (paths{"attacked"}).bases() {
		bodies = append(bodies, asBytes(b.body))
	}
	return bodies
}
