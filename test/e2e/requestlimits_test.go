// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/borough-io/borough/pkg/requestlimits"
	"github.com/borough-io/borough/test/harness"
)

const (
	asMerge     = "application/merge-patch+json"
	asStrategic = "application/strategic-merge-patch+json"
	asJSONPatch = "application/json-patch+json"
	asApply     = "application/apply-patch+yaml"
)

func repeatJSON(n int, item string) string {
	return "[" + strings.TrimSuffix(strings.Repeat(item+",", n), ",") + "]"
}

func numbered(n int, format string) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, ","+format, i)
	}
	return b.String()[1:]
}

// TestRequestLimits sends small bodies that would be expensive to process, to
// every path that accepts them, in every encoding. Each is rejected with a message
// that names the limit that it exceeds.
func TestRequestLimits(t *testing.T) {
	t.Parallel()
	ns := newNamespace(t, borough)
	createPod(t, borough, ns, newPod("there"))
	createLimitRange(t, borough, ns, newLimitRange("there"))
	http := borough.HTTP(t)
	in := api + "/namespaces/" + ns
	const (
		exponent   = "the exponent of a quantity must be between -100 and 100"
		containers = "spec.containers: must have at most 1000 elements"
	)
	pod := func(spec string) string {
		return `{"apiVersion":"tenancy.borough.io/v1","kind":"Pod","metadata":{"name":"there"},"spec":` + spec + `}`
	}
	container := func(resources string) string {
		return pod(`{"containers":[{"name":"c","image":"i","resources":` + resources + `}]}`)
	}
	limits := func(spec string) string {
		return `{"apiVersion":"tenancy.borough.io/v1","kind":"LimitRange","metadata":{"name":"there"},"spec":` + spec + `}`
	}
	yamlBomb := "metadata: {name: there}\na: &a [" + numbered(10, "%d") + "]\n"
	for i := range 8 {
		name, next := string(rune('a'+i)), string(rune('b'+i))
		yamlBomb += next + ": &" + next + " " + repeatJSON(10, "*"+name) + "\n"
	}

	type target struct{ method, path, contentType string }
	objects := func(resource string) []target {
		collection, object := in+"/"+resource+"?dryRun=All", in+"/"+resource+"/there?dryRun=All&fieldManager=m&force=true"
		return []target{{"POST", collection, asJSON}, {"POST", collection, asYAML}, {"PUT", strings.Replace(object, "&force=true", "", 1), asJSON},
			{"PATCH", strings.Replace(object, "&force=true", "", 1), asMerge}, {"PATCH", strings.Replace(object, "&force=true", "", 1), asStrategic}, {"PATCH", object, asApply}}
	}
	subresource := func(name string) []target {
		path := in + "/pods/there/" + name + "?dryRun=All"
		return []target{{"PUT", path, asJSON}, {"PUT", path, asYAML}, {"PATCH", path, asMerge}, {"PATCH", path, asStrategic}}
	}
	jsonPatch := []target{{"PATCH", in + "/pods/there?dryRun=All", asJSONPatch}}
	yaml := []target{{"POST", in + "/pods?dryRun=All", asYAML}, {"PATCH", in + "/pods/there?dryRun=All&fieldManager=m", asApply}}
	strategic := []target{{"PATCH", in + "/pods/there?dryRun=All", asStrategic}}

	for _, test := range []struct {
		name    string
		targets []target
		body    string
		code    int
		message string
	}{
		{"huge exponent", objects("pods"), pod(`{"containers":[{"name":"a","image":"i","resources":{"limits":{"memory":"1e30000000"}}},{"name":"b","image":"i","resources":{"limits":{"memory":"1"}}}]}`),
			400, "spec.containers[0].resources.limits[memory]: " + exponent},
		{"tiny exponent", objects("pods"), container(`{"requests":{"cpu":"1e-10000000"}}`), 400, "spec.containers[0].resources.requests[cpu]: " + exponent},
		{"many digits", objects("pods"), container(`{"requests":{"cpu":"` + strings.Repeat("9", 1<<20) + `"}}`), 400, "a quantity must have at most 100 characters"},
		{"status", subresource("status"), `{"metadata":{"name":"there"},"status":{"containerStatuses":[{"name":"c","allocatedResources":{"cpu":"1e30000000"}}]}}`, 400, "status.containerStatuses[0].allocatedResources[cpu]: " + exponent},
		{"resize", subresource("resize"), container(`{"requests":{"cpu":"1e30000000"}}`), 400, exponent},
		{"limit range", objects("limitranges"), limits(`{"limits":[{"type":"Container","max":{"cpu":"1e30000000"},"min":{"cpu":"1"}}]}`), 400, "spec.limits[0].max[cpu]: " + exponent},
		{"containers", objects("pods"), pod(`{"containers":` + repeatJSON(20000, `{"name":"c","image":"i"}`) + `}`), 400, containers},
		{"ephemeral containers", subresource("ephemeralcontainers"), pod(`{"ephemeralContainers":` + repeatJSON(1001, `{"name":"c","image":"i"}`) + `}`), 400, "spec.ephemeralContainers: must have at most 1000 elements"},
		{"items", objects("limitranges"), limits(`{"limits":[` + numbered(15000, `{"type":"a/t%d","max":{"cpu":"1"}}`) + `]}`), 400, "spec.limits: must have at most 1000 elements"},
		{"labels", objects("pods"), `{"apiVersion":"tenancy.borough.io/v1","kind":"Pod","metadata":{"name":"there","labels":{` + numbered(10001, `"l%d":""`) + `}}}`, 400, "metadata.labels: must have at most 10000 entries"},
		{"depth", objects("pods"), pod(`{"a":` + strings.Repeat("[", 5000) + strings.Repeat("]", 5000) + `}`), 400, "objects and lists must be nested at most 100 deep"},
		{"another kind", []target{{"POST", in + "/pods", asJSON}}, `{"apiVersion":"tenancy.borough.io/v1","kind":"PodList","items":[{"spec":{"overhead":{"cpu":"1e-10000000"}}}]}`, 400, "items[0].spec.overhead[cpu]: " + exponent},
		{"aliases", yaml, yamlBomb, 400, "the YAML document must have at most 10000 values once its aliases are replaced"},
		{"elements of a strategic merge patch", strategic, pod(`{"containers":[{"name":"c","env":[` + numbered(1001, `{"name":"a%d"}`) + `]}]}`), 400, "the lists of a strategic merge patch must have at most 1000 elements together"},
		{"operations", jsonPatch, repeatJSON(1001, `{"op":"add","path":"/metadata/labels/a","value":"b"}`), 400, "the JSON patch must have at most 1000 elements"},
		{"copies", jsonPatch, `[{"op":"add","path":"/metadata/annotations","value":{"a":"` + strings.Repeat("x", 400_000) + `"}},` + numbered(4, `{"op":"copy","from":"/metadata/annotations/a","path":"/metadata/annotations/b%d"}`) + `]`,
			422, "the server rejected our request due to an error in our request"},
		{"a string that becomes a quantity", jsonPatch, `[{"op":"add","path":"/metadata/annotations","value":{"a":"1e-10000000"}},{"op":"add","path":"/spec/overhead","value":{}},
			{"op":"copy","from":"/metadata/annotations/a","path":"/spec/overhead/cpu"}]`, 422, "spec.overhead[cpu]: " + exponent},
		{"invalid containers", objects("pods")[:3], pod(`{"containers":` + repeatJSON(1000, `{}`) + `}`), 422, "only the first 100 errors are shown"},
		{"invalid labels", objects("pods"), `{"apiVersion":"tenancy.borough.io/v1","kind":"Pod","metadata":{"name":"there","labels":{` + numbered(5000, `"a b%d":""`) + `}},"spec":{"containers":[{"name":"c","image":"i"}]}}`, 422, "only the first 100 errors are shown"},
		{"a resource that is a huge page", objects("pods")[:3], container(`{"limits":{"hugepages-1e30000000":"1","cpu":"1"}}`), 422, "is not positive integer multiple of hugepages-1e30000000"},
		{"a huge page beyond an int64", objects("pods")[:2], container(`{"limits":{"hugepages-10E":"1","cpu":"1"}}`), 422, "is not positive integer multiple of hugepages-10E"},
	} {
		for _, target := range test.targets {
			t.Run(test.name+"/"+target.method+" "+target.contentType, func(t *testing.T) {
				answer := http.Do(t, target.method, target.path, []byte(test.body), "Content-Type", target.contentType)
				wantStatus(t, answer, test.code, test.message)
			})
		}
	}

	t.Run("protobuf", func(t *testing.T) {
		body := toProtobuf(t, newPod("p", withResources(quantities("cpu=1234567890"), nil)))
		hostile := strings.Replace(string(body), "1234567890", "1e30000000", 1)
		wantStatus(t, http.Do(t, "POST", in+"/pods?dryRun=All", []byte(hostile), "Content-Type", asProto), 400, "spec.containers[0].resources.requests: "+exponent)
	})
	// A list in pages would not get past them: the token of the next page has a name in JSON.
	t.Run("names that are not UTF-8", func(t *testing.T) {
		for path, obj := range map[string]runtime.Object{
			"/api/v1/namespaces/" + ns + "/events": &corev1.Event{
				TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Event"}, ObjectMeta: metav1.ObjectMeta{Name: "\xff"},
				InvolvedObject: corev1.ObjectReference{Namespace: ns},
			},
			"/apis/rbac.authorization.k8s.io/v1/namespaces/" + ns + "/roles": &rbacv1.Role{
				TypeMeta: metav1.TypeMeta{APIVersion: "rbac.authorization.k8s.io/v1", Kind: "Role"}, ObjectMeta: metav1.ObjectMeta{Name: "\xff"},
			},
		} {
			wantStatus(t, http.Do(t, "POST", path, toProtobuf(t, obj), "Content-Type", asProto), 400, "metadata.name: must be valid UTF-8")
		}
	})
	t.Run("strings that look like quantities", func(t *testing.T) {
		body := `{"apiVersion":"tenancy.borough.io/v1","kind":"Pod","metadata":{"name":"commit","labels":{"commit":"12e45678"},"annotations":{"a":"1e30000000"}},
			"spec":{"containers":[{"name":"c","image":"i","env":[{"name":"A","value":"1e30000000"}]}]}}`
		for _, target := range objects("pods") {
			body := body
			if target.method != "POST" {
				body = strings.Replace(body, `"name":"commit"`, `"name":"there"`, 1)
			}
			if answer := http.Do(t, target.method, target.path, []byte(body), "Content-Type", target.contentType); answer.Code >= 400 && strings.Contains(answer.String(), "quantity") {
				t.Errorf("%s %s: got %v", target.method, target.contentType, answer)
			}
		}
	})
	wantAnswer(t, http.Do(t, "GET", "/readyz", nil), 200)
}

// TestWarningsAreLimited creates valid Pods with thousands of elements, each pair
// of which could cause a warning.
func TestWarningsAreLimited(t *testing.T) {
	t.Parallel()
	ns := newNamespace(t, borough)
	http := borough.HTTP(t)
	for name, spec := range map[string]string{
		"ports": `{"containers":[{"name":"c","image":"i","ports":` + repeatJSON(10000, `{"containerPort":80}`) + `}]}`,
		"files": `{"containers":[{"name":"c","image":"i"}],"volumes":[{"name":"v","configMap":{"name":"m","items":` + repeatJSON(10000, `{"key":"k","path":"p"}`) + `}}]}`,
	} {
		body := `{"apiVersion":"tenancy.borough.io/v1","kind":"Pod","metadata":{"name":"p"},"spec":` + spec + `}`
		answer := http.Do(t, "POST", api+"/namespaces/"+ns+"/pods?dryRun=All", []byte(body), "Content-Type", asJSON)
		wantAnswer(t, answer, 201)
		if len(answer.Header.Values("Warning")) == 0 {
			t.Errorf("%s: no warnings", name)
		}
	}
}

// TestManyAppliers lets ever more managers apply a Pod, and then writes back what is read:
// an agent must be able to write the status of a Pod, no matter who has written the Pod.
func TestManyAppliers(t *testing.T) {
	t.Parallel()
	ns := newNamespace(t, borough)
	http := borough.HTTP(t)
	pod := api + "/namespaces/" + ns + "/pods/p"
	apply := func(i int) harness.Answer {
		spec := `{"apiVersion":"tenancy.borough.io/v1","kind":"Pod","metadata":{"name":"p","labels":{"l%d":"v"}},"spec":{"containers":[{"name":"c","image":"i"}]}}`
		return http.Do(t, "PATCH", fmt.Sprintf("%s?fieldManager=m%d", pod, i), fmt.Appendf(nil, spec, i), "Content-Type", asApply)
	}
	for i := range requestlimits.MaxAppliers {
		if answer := apply(i); answer.Code >= 300 {
			t.Fatalf("manager %d: got %v", i, answer)
		}
	}
	wantStatus(t, apply(requestlimits.MaxAppliers), 422, "metadata.managedFields: Too many: 101: must have at most 100 items")
	wantAnswer(t, apply(0), 200)
	for i := range 20 {
		read := wantAnswer(t, http.Do(t, "GET", pod, nil), 200)
		wantAnswer(t, http.Do(t, "PUT", fmt.Sprintf("%s/status?fieldManager=u%d", pod, i),
			[]byte(strings.Replace(string(read.Body), `"phase":"`, fmt.Sprintf(`"message":"%d","phase":"`, i), 1)), "Content-Type", asJSON), 200)
	}

	// A create with managed fields that a client has made up is no exception.
	entry := `{"manager":"m%d","operation":"Apply","apiVersion":"tenancy.borough.io/v1","fieldsType":"FieldsV1","fieldsV1":{"f:metadata":{"f:labels":{"f:l%d":{}}}}}`
	var entries []string
	for i := range requestlimits.MaxManagers {
		entries = append(entries, fmt.Sprintf(entry, i, i))
	}
	body := `{"metadata":{"name":"q","labels":{"l0":"v"},"managedFields":[` + strings.Join(entries, ",") + `]},"spec":{"containers":[{"name":"c","image":"i"}]}}`
	wantStatus(t, http.Do(t, "POST", api+"/namespaces/"+ns+"/pods", []byte(body), "Content-Type", asJSON), 422, ": must have at most 100 items")
}

// TestManyPatches lets a Pod grow by patches that each are within the limits, and then
// writes back what is read.
func TestManyPatches(t *testing.T) {
	t.Parallel()
	ns := newNamespace(t, borough)
	createPod(t, borough, ns, newPod("p"))
	http := borough.HTTP(t)
	pod := api + "/namespaces/" + ns + "/pods/p"
	labels := func(contentType string, from, to int) harness.Answer {
		var list []string
		for i := from; i < to; i++ {
			list = append(list, fmt.Sprintf(`"l%d":"v"`, i))
		}
		body := `{"apiVersion":"tenancy.borough.io/v1","kind":"Pod","metadata":{"name":"p","labels":{` + strings.Join(list, ",") + `}}}`
		return http.Do(t, "PATCH", fmt.Sprintf("%s?fieldManager=m%d", pod, from), []byte(body), "Content-Type", contentType)
	}
	wantAnswer(t, labels(asStrategic, 0, 6000), 200)
	wantAnswer(t, labels(asApply, 6000, 10_000), 200)
	for _, contentType := range []string{asStrategic, asApply, asMerge} {
		answer := labels(contentType, 10_000, 10_001)
		if answer.Code != 400 && answer.Code != 422 || !strings.Contains(answer.String(), "metadata.labels: must have at most 10000 entries") {
			t.Errorf("%s: got %d %.300s", contentType, answer.Code, answer.Body)
		}
	}
	read := wantAnswer(t, http.Do(t, "GET", pod, nil), 200)
	if answer := http.Do(t, "PUT", pod+"/status", read.Body, "Content-Type", asJSON); answer.Code != 200 {
		t.Errorf("got %d %.300s", answer.Code, answer.Body)
	}

	// Admission adds an annotation.
	createLimitRange(t, borough, ns, newLimitRange("l", corev1.LimitRangeItem{Type: corev1.LimitTypeContainer, DefaultRequest: quantities("cpu=1")}))
	var list []string
	for i := range requestlimits.MaxElements {
		list = append(list, fmt.Sprintf(`"a%d":""`, i))
	}
	body := `{"metadata":{"name":"q","annotations":{` + strings.Join(list, ",") + `}},"spec":{"containers":[{"name":"c","image":"i"}]}}`
	answer := http.Do(t, "POST", api+"/namespaces/"+ns+"/pods", []byte(body), "Content-Type", asJSON)
	if answer.Code != 422 || !strings.Contains(answer.String(), "metadata.annotations: Too many: 10001: must have at most 10000 items") {
		t.Errorf("got %d %.300s", answer.Code, answer.Body)
	}
}
