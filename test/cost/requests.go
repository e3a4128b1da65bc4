// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"regexp"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/borough-io/borough/pkg/apis/kubernetes"
	"github.com/borough-io/borough/pkg/apis/tenancy"
	"github.com/borough-io/borough/pkg/apis/tenancy/install"
	"github.com/borough-io/borough/pkg/requestlimits"
)

// request is a request whose body can have up to max elements.
type request struct {
	name string
	target
	max  int
	body func(n int) string
	// stored is the size of the object that it changes, if that is large.
	stored int
}

type target struct{ method, path, contentType string }

const (
	group     = "/apis/tenancy.borough.io/v1"
	namespace = group + "/namespaces/ns"
	rights    = "/apis/rbac.authorization.k8s.io/v1"
)

// kind is a namespaced kind, the type of its objects, and its API version.
type kind struct {
	tenancy.NamespacedKind
	object     reflect.Type
	apiVersion string
}

// kinds returns all kinds that a standalone server has.
func kinds() (kinds []kind) {
	scheme := runtime.NewScheme()
	install.Install(scheme)
	kubernetes.Install(scheme)
	for _, k := range append(tenancy.NamespacedKinds(), kubernetes.NamespacedKinds()...) {
		version := scheme.PrioritizedVersionsForGroup(k.Group)[0]
		kinds = append(kinds, kind{k, scheme.KnownTypes(version)[k.Kind], version.String()})
	}
	return kinds
}

// path returns the path of the kind's objects.
func (k kind) path() string {
	root := "/apis/"
	if k.Group == "" {
		root = "/api/"
	}
	return root + k.apiVersion + "/namespaces/ns/" + k.Resource
}

type object struct{ path, body string }

// setup are the objects that the requests change.
var setup = []object{
	{group + "/namespaces", `{"metadata":{"name":"ns"}}`},
	{namespace + "/pods", `{"metadata": {"name":"o"},"spec":{"containers":[{"name":"c","image":"i"}]}}`},
	{namespace + "/limitranges", `{"metadata": {"name":"o"},"spec":{"limits":[{"type":"PersistentVolumeClaim","max":{"storage":"1"}}]}}`},
	{namespace + "/resourcequotas", `{"metadata": {"name":"o"},"spec":{"hard":{"pods":"1000000"}}}`},
	{rights + "/namespaces/ns/roles", `{"metadata": {"name":"o"},"rules":[{"verbs":["get"],"apiGroups":[""],"resources":["pods"]}]}`},
	{rights + "/namespaces/ns/rolebindings", `{"metadata": {"name":"o"},"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"Role","name":"o"}}`},
	{"/api/v1/namespaces/ns/events", `{"metadata": {"name":"o"},"involvedObject":{"namespace":"ns"}}`},
	{"/apis/coordination.k8s.io/v1/namespaces/ns/leases", `{"metadata": {"name":"o"},"spec":{}}`},
	{namespace + "/pods", `{"metadata": {"name":"claims"},"spec":{"containers":[{"name":"c","image":"i","resources":{"requests":{"cpu":"1"}}}]}}`},
	// As much as a strategic merge patch can be merged into.
	{namespace + "/pods", largePod},
	{namespace + "/pods", podOfSidecar},
}

var largePod = `{"metadata":{"name":"large","finalizers":[` + items(1000, `"a/f%d"`) + `]},"spec":{"containers":[{"name":"c","image":"i","env":[` + items(1600, `{"name":"e%d"}`) + `]}]}}`

// podOfSidecar has one sidecar, and as many init containers after it as a Pod may have.
var podOfSidecar = `{"metadata":{"name":"sidecar"},"spec":{"containers":[{"name":"c","image":"i"}],"initContainers":[{"name":"s","image":"i","restartPolicy":"Always"},` +
	items(requestlimits.MaxContainers-1, `{"name":"i%d","image":"i"}`) + `]}}`

// targets are the paths that take an object of a kind.
func targets(path string) []target {
	collection, object := path+"?dryRun=All", path+"/o?dryRun=All&fieldManager=m"
	targets := []target{
		{"POST", collection, "application/json"},
		{"POST", collection, "application/yaml"},
		{"PUT", object, "application/json"},
		{"PATCH", object, "application/merge-patch+json"},
		{"PATCH", object, "application/strategic-merge-patch+json"},
		{"PATCH", object + "&force=true", "application/apply-patch+yaml"},
	}
	if path == namespace+"/pods" {
		for _, subresource := range []string{"status", "resize", "ephemeralcontainers"} {
			targets = append(targets, target{"PATCH", path + "/o/" + subresource + "?dryRun=All", "application/merge-patch+json"})
		}
	}
	return targets
}

// items returns n items of a list, or entries of a map, each with its number.
func items(n int, format string) string {
	var b strings.Builder
	for i := range n {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(strings.ReplaceAll(format, "%d", strconv.Itoa(i)))
	}
	return b.String()
}

// hostileRequests are those that once cost too much, or might.
func hostileRequests() (requests []request) {
	pods := targets(namespace + "/pods")
	add := func(name string, target target, max int, body func(n int) string) {
		r := request{name: name, target: target, max: max, body: body}
		switch {
		case strings.Contains(target.path, "/large"):
			r.stored = len(largePod)
		case strings.Contains(target.path, "/sidecar"):
			r.stored = len(podOfSidecar)
		}
		requests = append(requests, r)
	}
	pod := func(meta, spec string) string {
		return `{"apiVersion":"tenancy.borough.io/v1","kind":"Pod","metadata":{"name":"o"` + meta + `},"spec":{` + spec + `}}`
	}
	container := func(fields string) string { return `"containers":[{"name":"c","image":"i",` + fields + `}]` }
	const plain = `"containers":[{"name":"c","image":"i"}]`
	for name, format := range map[string]string{
		"ports":          `"ports":[%s],"x":0|{"containerPort":80}`,
		"host ports":     `"ports":[%s]|{"containerPort":80,"hostPort":%d}`,
		"variables":      `"env":[%s]|{"name":"e","value":"v"}`,
		"other names":    `"env":[%s]|{"name":"e%d"}`,
		"unknown fields": `"x":{%s}|"y%d":1`,
	} {
		list, item, _ := strings.Cut(format, "|")
		add(name, pods[0], 10000, func(n int) string {
			return pod("", container(strings.Replace(list, "%s", items(n, item), 1)))
		})
	}
	add("containers", pods[0], 1000, func(n int) string {
		return pod("", `"containers":[`+items(n, `{"name":"c%d","image":"i","env":[{"name":"a"},{"name":"b"}],"ports":[{"containerPort":1%d}]}`)+`]`)
	})
	add("invalid containers", pods[0], 1000, func(n int) string { return pod("", `"containers":[`+items(n, `{}`)+`]`) })
	add("files", pods[0], 10000, func(n int) string {
		return pod("", plain+`,"volumes":[{"name":"v","configMap":{"name":"m","items":[`+items(n, `{"key":"k","path":"p"}`)+`]}}]`)
	})
	add("files of a long name", pods[0], 100000, func(n int) string {
		return pod("", plain+`,"volumes":[{"name":"v","configMap":{"name":"`+strings.Repeat("m", n)+`","items":[`+items(200, `{"key":"k","path":"p"}`)+`]}}]`)
	})
	add("errors in an element with a long key", target{"PATCH", namespace + "/pods/o?dryRun=All&fieldManager=m", "application/apply-patch+yaml"}, 100000, func(n int) string {
		return pod("", `"containers":[{"name":"`+strings.Repeat("c", n)+`","image":"i","env":[`+items(5000, `{"name":"a"}`)+`]}]`)
	})
	add("repeated fields below a long one", target{"PATCH", namespace + "/pods/o?dryRun=All", "application/merge-patch+json"}, 100000, func(n int) string {
		return `{"` + strings.Repeat("x", n) + `":{"a":{` + items(5000, `"b":1`) + `}}}`
	})
	add("requests of a long claim", target{"PATCH", namespace + "/pods/claims/status?dryRun=All", "application/merge-patch+json"}, 100000, func(n int) string {
		return `{"status":{"extendedResourceClaimStatus":{"resourceClaimName":"` + strings.Repeat("x", n) + `","requestMappings":[` + items(5000, `{"containerName":"c","resourceName":"cpu","requestName":"%d"}`) + `]}}}`
	})
	add("values of a long key", target{"POST", rights + "/clusterroles?dryRun=All", "application/json"}, 100000, func(n int) string {
		return `{"metadata":{"name":"o"},"aggregationRule":{"clusterRoleSelectors":[{"matchExpressions":[{"operator":"In","key":"` + strings.Repeat("k", n) + `","values":[` + items(5000, `"!"`) + `]}]}]}}`
	})
	add("mounts and devices", pods[0], 5000, func(n int) string {
		return pod("", container(`"volumeMounts":[`+items(n, `{"name":"v%d","mountPath":"/v%d"}`)+`],"volumeDevices":[`+items(n, `{"name":"d%d","devicePath":"/d%d"}`)+`]`))
	})
	add("claims", pods[0], 5000, func(n int) string {
		return pod("", container(`"resources":{"claims":[`+items(n, `{"name":"x%d"}`)+`]}`)+`,"resourceClaims":[`+items(n, `{"name":"c%d","resourceClaimName":"c"}`)+`]`)
	})
	// As many as can be summed, and as many as a Pod may have.
	for name, max := range map[string]int{"sidecars": 18, "too many sidecars": requestlimits.MaxContainers} {
		add(name, pods[0], max, func(n int) string {
			var sidecars []string
			for i := range n {
				resources := items(30, `"a.b/`+strconv.Itoa(i)+`-%d":"1"`)
				sidecars = append(sidecars, `{"name":"s`+strconv.Itoa(i)+`","image":"i","restartPolicy":"Always","resources":{"limits":{`+resources+`}}}`)
			}
			return pod("", plain+`,"initContainers":[`+strings.Join(sidecars, ",")+`]`)
		})
	}
	for name, max := range map[string]int{"resources that are allocated to a sidecar": 20, "too many resources that are allocated to a sidecar": 10000} {
		add(name, target{"PATCH", namespace + "/pods/sidecar/status?dryRun=All", "application/merge-patch+json"}, max, func(n int) string {
			return `{"status":{"initContainerStatuses":[{"name":"s","allocatedResources":{` + items(n, `"a.b/%d":"1"`) + `}}]}}`
		})
	}
	add("spread constraints", pods[0], 10000, func(n int) string {
		return pod("", plain+`,"topologySpreadConstraints":[`+items(n, `{"maxSkew":1,"topologyKey":"k%d","whenUnsatisfiable":"DoNotSchedule","labelSelector":{}}`)+`]`)
	})
	add("invalid labels", pods[2], 10000, func(n int) string { return pod(`,"labels":{`+items(n, `"a b%d":""`)+`}`, plain) })
	add("managers", pods[2], requestlimits.MaxManagers, func(n int) string {
		return pod(`,"labels":{`+items(50*n, `"l%d":""`)+`},"managedFields":[`+items(n, `{"manager":"m%d","operation":"Apply","apiVersion":"tenancy.borough.io/v1","fieldsType":"FieldsV1","fieldsV1":{"f:metadata":{"f:labels":{"f:x%d":{}}}}}`)+`]`, plain)
	})
	add("owned fields", pods[2], 10000, func(n int) string {
		return pod(`,"managedFields":[{"manager":"m","operation":"Apply","apiVersion":"tenancy.borough.io/v1","fieldsType":"FieldsV1","fieldsV1":{`+items(n, `"f:x%d":{}`)+`}}]`, plain)
	})
	add("a difference", target{"PUT", namespace + "/pods/large?dryRun=All", "application/json"}, 10000, func(n int) string {
		return strings.Replace(pod("", container(`"env":[`+items(n, `{"name":"f%d"}`)+`]`)), `"name":"o"`, `"name":"large"`, 1)
	})
	large := namespace + "/pods/large?dryRun=All"
	add("operations", target{"PATCH", large, "application/json-patch+json"}, 1000, func(n int) string {
		return `[` + items(n, `{"op":"add","path":"/metadata/finalizers/0","value":"b/f%d"}`) + `]`
	})
	add("elements of a strategic merge patch", target{"PATCH", large, "application/strategic-merge-patch+json"}, 900, func(n int) string {
		return `{"spec":{"containers":[{"name":"c","env":[` + items(n, `{"name":"g%d"}`) + `]}]}}`
	})
	add("YAML", pods[1], 10000, func(n int) string {
		return "metadata:\n  name: o\n  labels:\n" + strings.ReplaceAll(items(n, "    l%d: a\n"), ",", "") + "spec: {" + plain + "}\n"
	})
	return requests
}

// generatedRequests returns n requests, each with one long list or map of a served
// type. Its elements are empty, all equal, or all different, or they are all equal and
// the texts of the objects that the list is in are long.
func generatedRequests(random *rand.Rand, n int) (requests []request) {
	for _, kind := range kinds() {
		var lists []list
		findLists(kind.object, "", "{", "}", &lists)
		for _, l := range lists {
			for style, name := range []string{"empty", "same", "different", "same in long"} {
				for _, target := range targets(kind.path()) {
					requests = append(requests, request{
						name:   fmt.Sprintf("%s%s %s %s", kind.Resource, l.path, name, target.method),
						target: target,
						max:    l.max,
						body: func(n int) string {
							element, text := style, ""
							if style == long {
								element, text = same, `"$1":"`+strings.Repeat("x", 5*n)+`",`
							}
							body := texts.ReplaceAllString(l.prefix, text) + items(n, l.item(element)) + l.suffix
							head := `{"apiVersion":"` + kind.apiVersion + `","kind":"` + kind.Kind + `","metadata":{"name":"o"`
							if rest, found := strings.CutPrefix(body, `{"metadata":{`); found {
								return head + "," + rest
							}
							return head + "}," + body[1:]
						},
					})
				}
			}
		}
	}
	if n < 0 {
		return requests
	}
	random.Shuffle(len(requests), func(i, j int) { requests[i], requests[j] = requests[j], requests[i] })
	return requests[:min(n, len(requests))]
}

// Two of the styles of generatedRequests.
const (
	same = 1
	long = 3
)

// texts are the texts of the objects that a list is in, as its prefix has them.
var texts = regexp.MustCompile(`"(\w+)":TEXT,`)

// list is a list or map in an object, with what comes before and after its
// elements in JSON.
type list struct {
	path, prefix, suffix string
	dict                 bool
	elem                 reflect.Type
	max                  int
}

// findLists finds all lists and maps below the fields of a struct.
func findLists(t reflect.Type, path, prefix, suffix string, lists *[]list) {
	for i := range t.NumField() {
		f := t.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name == "" {
			if f.Anonymous && f.Type.Kind() == reflect.Struct {
				findLists(f.Type, path, prefix, suffix, lists)
			}
			continue
		}
		findListsOf(f.Type, path+"."+name, prefix+textsOf(t, path, name)+`"`+name+`":`, suffix, lists)
	}
}

// textsOf returns the fields of a struct that have texts, except those of metadata, which
// are bounded, and the field that is being written.
func textsOf(t reflect.Type, path, except string) string {
	var b strings.Builder
	if path == "" || strings.HasPrefix(path, ".metadata") {
		return ""
	}
	for i := range t.NumField() {
		f := t.Field(i)
		if name, _, _ := strings.Cut(f.Tag.Get("json"), ","); name != "" && name != except && f.Type.Kind() == reflect.String {
			b.WriteString(`"` + name + `":TEXT,`)
		}
	}
	return b.String()
}

func findListsOf(t reflect.Type, path, prefix, suffix string, lists *[]list) {
	switch {
	case t.Kind() == reflect.Pointer:
		findListsOf(t.Elem(), path, prefix, suffix, lists)
	case t == reflect.TypeFor[resource.Quantity](), t == reflect.TypeFor[metav1.Time](), t == reflect.TypeFor[metav1.FieldsV1]():
	case t.Kind() == reflect.Struct:
		findLists(t, path, prefix+"{", "}"+suffix, lists)
	case t.Kind() == reflect.Map:
		*lists = append(*lists, list{path, prefix + "{", "}" + suffix, true, t.Elem(), 10000})
	case t.Kind() == reflect.Slice && t.Elem().Kind() != reflect.Uint8:
		l := list{path, prefix + "[", "]" + suffix, false, t.Elem(), requestlimits.MaxElements}
		switch t.Elem() {
		case reflect.TypeFor[corev1.Container](), reflect.TypeFor[corev1.EphemeralContainer](), reflect.TypeFor[corev1.ContainerStatus]():
			l.max = requestlimits.MaxContainers
		case reflect.TypeFor[corev1.LimitRangeItem]():
			l.max = requestlimits.MaxLimitRangeItems
		case reflect.TypeFor[metav1.ManagedFieldsEntry]():
			l.max = requestlimits.MaxManagers
		case reflect.TypeFor[metav1.OwnerReference]():
			l.max = requestlimits.MaxOwners
		}
		*lists = append(*lists, l)
		if t.Elem().Kind() == reflect.Struct {
			findLists(t.Elem(), path+"[]", prefix+"[{", "}]"+suffix, lists)
		}
	}
}

// item returns the format of an element in one of the first three styles.
func (l list) item(style int) string {
	text := []string{`""`, `"a/b"`, `"x%d"`}[style]
	value := text
	switch {
	case l.elem == reflect.TypeFor[resource.Quantity]():
		value = `"1"`
	case l.elem.Kind() == reflect.Int32, l.elem.Kind() == reflect.Int64:
		value = []string{"0", "1", "%d"}[style]
	case l.elem.Kind() == reflect.Struct:
		var fields []string
		for i := range l.elem.NumField() {
			f := l.elem.Field(i)
			if name, _, _ := strings.Cut(f.Tag.Get("json"), ","); style > 0 && name != "" && f.Type.Kind() == reflect.String {
				fields = append(fields, `"`+name+`":`+text)
			}
		}
		value = "{" + strings.Join(fields, ",") + "}"
	}
	if l.dict {
		return `"x%d":` + value
	}
	return value
}
