// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"math/rand/v2"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"

	"github.com/borough-io/borough/test/harness"
)

const podJSON = `{"apiVersion":"tenancy.borough.io/v1","kind":"Pod","metadata":{"name":"p"},"spec":{"containers":[{"name":"c","image":"i:1"}]}}`

func TestBadInput(t *testing.T) {
	t.Parallel()
	ns := newNamespace(t, borough)
	createPod(t, borough, ns, newPod("there"))
	http := borough.HTTP(t)
	pods := api + "/namespaces/" + ns + "/pods"
	const strict = "?fieldValidation=Strict"
	for _, test := range []struct {
		name, method, path, contentType, body string
		code                                  int
		message                               string
	}{
		{"malformed JSON", "POST", pods, asJSON, `{"kind":`, 400, "unexpected end of JSON input"},
		{"no JSON", "POST", pods, asJSON, "hello", 400, ""},
		{"empty body", "POST", pods, asJSON, "", 400, ""},
		{"JSON of another type", "POST", pods, asJSON, "[1,2]", 400, ""},
		{"malformed YAML", "POST", pods, asYAML, "a: [", 400, "yaml: line 1: did not find expected node content"},
		{"malformed protobuf", "POST", pods, asProto, "k8s\x00\xff\xff\xff", 400, ""},
		{"protobuf without its prefix", "POST", pods, asProto, "hello", 400, "provided data does not appear to be a protobuf message"},
		{"wrong kind", "POST", pods, asJSON, strings.Replace(podJSON, "Pod", "LimitRange", 1), 400, "LimitRange in version \"v1\" cannot be handled as a Pod"},
		{"unknown kind", "POST", pods, asJSON, strings.Replace(podJSON, "Pod", "Foo", 1), 400, "no kind \"Foo\" is registered for version \"tenancy.borough.io/v1\""},
		{"wrong group", "POST", pods, asJSON, strings.Replace(podJSON, "tenancy.borough.io/v1", "v1", 1), 400, `the API version in the data (v1) does not match the expected API version (tenancy.borough.io/v1)`},
		{"unknown version", "POST", pods, asJSON, strings.Replace(podJSON, "/v1", "/v9", 1), 400, ""},
		{"field of the wrong type", "POST", pods, asJSON, strings.Replace(podJSON, `"name":"p"`, `"name":7`, 1), 400, "cannot unmarshal number into Go struct field"},
		{"unknown field", "POST", pods + strict, asJSON, strings.Replace(podJSON, `"spec":{`, `"spec":{"foo":1,`, 1), 400, `strict decoding error: unknown field "spec.foo"`},
		{"field twice", "POST", pods + strict, asJSON, strings.Replace(podJSON, `"image":"i:1"`, `"image":"i:1","image":"j:1"`, 1), 400, `strict decoding error: duplicate field "spec.containers[0].image"`},
		{"unknown validation", "POST", pods + "?fieldValidation=Foo", asJSON, podJSON, 422, "fieldValidation"},
		{"unknown dry run", "POST", pods + "?dryRun=Some", asJSON, podJSON, 422, "dryRun"},
		{"no name", "POST", pods, asJSON, strings.Replace(podJSON, `"name":"p"`, "", 1), 422, "metadata.name: Required value: name or generateName is required"},
		{"name", "POST", pods, asJSON, strings.Replace(podJSON, `"name":"p"`, `"name":"P_"`, 1), 422, "a lowercase RFC 1123 subdomain must consist of"},
		{"name of a Namespace", "POST", api + "/namespaces", asJSON, `{"metadata":{"name":"a.b"}}`, 422, "metadata.name: Invalid value: \"a.b\": must not contain dots"},
		{"name too long", "POST", api + "/namespaces", asJSON, `{"metadata":{"name":"` + strings.Repeat("a", 64) + `"}}`, 422, "63"},
		{"another namespace in the body", "POST", pods, asJSON, strings.Replace(podJSON, `"name":"p"`, `"name":"p","namespace":"other"`, 1), 400, "the namespace of the provided object does not match the namespace sent on the request"},
		{"another name in the body", "PUT", pods + "/there", asJSON, podJSON, 400, "the name of the object (p) does not match the name on the URL (there)"},
		{"quantity", "POST", pods, asJSON, strings.Replace(podJSON, `"image":"i:1"`, `"image":"i:1","resources":{"limits":{"cpu":"1x"}}`, 1), 400, "quantities must match the regular expression"},
		{"label", "POST", pods, asJSON, strings.Replace(podJSON, `"name":"p"`, `"name":"p","labels":{"a b":"c"}`, 1), 422, "metadata.labels"},
		{"uid of another", "PUT", pods + "/there", asJSON, strings.Replace(podJSON, `"name":"p"`, `"name":"there","uid":"1"`, 1), 409, "Precondition failed: UID in precondition: 1"},
		{"resourceVersion", "PUT", pods + "/there", asJSON, strings.Replace(podJSON, `"name":"p"`, `"name":"there","resourceVersion":"x"`, 1), 400, ""},
		{"JSON patch", "PATCH", pods + "/there", "application/json-patch+json", `{"a":1}`, 400, ""},
		{"JSON patch of what is not there", "PATCH", pods + "/there", "application/json-patch+json", `[{"op":"remove","path":"/spec/foo"}]`, 422, ""},
		{"JSON patch that replaces all by nothing", "PATCH", pods + "/there", "application/json-patch+json", `[{"op":"replace","path":""}]`, 400, "the patch cannot be applied"},
		{"JSON patch that tests all for nothing", "PATCH", pods + "/there", "application/json-patch+json", `[{"op":"test","path":""}]`, 400, "the patch cannot be applied"},
		{"JSON patch that tests a list for null", "PATCH", pods + "/there", "application/json-patch+json", `[{"op":"test","path":"/spec/containers","value":[null]}]`, 400, "the patch cannot be applied"},
		{"JSON patch that adds to a copy of null", "PATCH", pods + "/there", "application/json-patch+json", `[{"op":"add","path":"/metadata/labels","value":null},{"op":"copy","from":"/metadata/labels","path":"/metadata/annotations"},{"op":"add","path":"/metadata/annotations/a","value":"b"}]`, 400, "the patch cannot be applied"},
		{"merge patch", "PATCH", pods + "/there", "application/merge-patch+json", `[1]`, 400, ""},
		{"strategic patch", "PATCH", pods + "/there", "application/strategic-merge-patch+json", `{"spec":7}`, 422, ""},
		{"strategic patch with an object for a key", "PATCH", pods + "/there", "application/strategic-merge-patch+json", `{"spec":{"containers":[{"name":{}}]}}`, 400, "the patch cannot be applied"},
		{"strategic patch with a list for a key", "PATCH", pods + "/there", "application/strategic-merge-patch+json", `{"spec":{"containers":[{"name":[]},{"name":[1]}]}}`, 400, "the patch cannot be applied"},
		{"strategic patch with an object for a key to keep", "PATCH", pods + "/there", "application/strategic-merge-patch+json", `{"spec":{"$retainKeys":[{}]}}`, 400, "the patch cannot be applied"},
		{"strategic patch with an object in an order", "PATCH", pods + "/there", "application/strategic-merge-patch+json", `{"metadata":{"finalizers":["example.com/a"],"$setElementOrder/finalizers":["example.com/a",{}]}}`, 400, "the patch cannot be applied"},
		{"strategic patch with null in an order", "PATCH", pods + "/there", "application/strategic-merge-patch+json", `{"metadata":{"finalizers":[null],"$setElementOrder/finalizers":[]}}`, 400, "the patch cannot be applied"},
		{"patch of no known type", "PATCH", pods + "/there", "text/plain", `{}`, 415, ""},
		{"apply without a manager", "PATCH", pods + "/there", "application/apply-patch+yaml", podJSON, 422, "fieldManager: Required value: is required for apply patch"},
		{"options of DELETE", "DELETE", pods + "/there", asJSON, `{"kind":"Pod","apiVersion":"v1"}`, 400, ""},
		{"policy of DELETE", "DELETE", pods + "/there", asJSON, `{"propagationPolicy":"Foo"}`, 422, "propagationPolicy"},
		{"limit", "GET", pods + "?limit=x", "", "", 400, ""},
		{"selector", "GET", pods + "?labelSelector=%21%21", "", "", 400, "unable to parse requirement"},
		{"field selector", "GET", pods + "?fieldSelector=spec.foo%3D1", "", "", 400, "field label not supported: spec.foo"},
		{"resource", "GET", api + "/foos", "", "", 404, ""},
		{"subresource", "GET", pods + "/there/foo", "", "", 404, ""},
		{"verb", "POST", pods + "/there", asJSON, podJSON, 405, ""},
		{"too large", "POST", pods, asJSON, `{"a":"` + strings.Repeat("x", 4<<20) + `"}`, 413, "limit is 3145728"},
	} {
		t.Run(test.name, func(t *testing.T) {
			wantStatus(t, http.Do(t, test.method, test.path, []byte(test.body), "Content-Type", test.contentType), test.code, test.message)
		})
	}

	answer := http.Do(t, "POST", pods+"?fieldValidation=Warn", []byte(strings.Replace(podJSON, `"spec":{`, `"spec":{"foo":1,`, 1)), "Content-Type", asJSON)
	wantAnswer(t, answer, 201)
	wantContains(t, answer.Header.Get("Warning"), `unknown field \"spec.foo\"`)
}

// sendRaw sends a body with one of the content types to one of the paths that
// accept a body, and checks that the server does not return an internal error.
func sendRaw(t *testing.T, http harness.HTTP, ns string, body []byte, choice int) {
	t.Helper()
	in := api + "/namespaces/" + ns
	targets := []struct{ method, path string }{
		{"POST", api + "/namespaces"}, {"PUT", in}, {"PUT", in + "/status"}, {"POST", in + "/finalize"}, {"DELETE", api + "/namespaces/not-there"},
		{"POST", in + "/pods"}, {"PUT", in + "/pods/there"}, {"PUT", in + "/pods/there/status"}, {"POST", in + "/pods/there/binding"},
		{"PUT", in + "/pods/there/resize"}, {"PUT", in + "/pods/there/ephemeralcontainers"}, {"DELETE", in + "/pods/not-there"},
		{"POST", in + "/limitranges"}, {"PUT", in + "/limitranges/created-by-put"},
	}
	target := targets[choice%len(targets)]
	types := []string{asJSON, asYAML, asProto, "application/cbor"}
	contentType := types[choice/len(targets)%len(types)]
	if choice/len(targets)/len(types)%3 == 0 {
		target.method, target.path = "PATCH", in+"/pods/there?fieldManager=f"
		types = []string{"application/json-patch+json", "application/merge-patch+json", "application/strategic-merge-patch+json", "application/apply-patch+yaml", "application/apply-patch+cbor"}
		contentType = types[choice%len(types)]
	}
	answer := http.Do(t, target.method, target.path, body, "Content-Type", contentType)
	if answer.Code >= 500 {
		t.Errorf("%s %s as %s of %q: got %v", target.method, target.path, contentType, body, answer)
	}
}

// seeds returns bodies that are valid or almost valid.
func seeds(t testing.TB) [][]byte {
	t.Helper()
	seeds := [][]byte{
		nil, []byte("null"), []byte("{}"), []byte("[]"), []byte("0"), []byte(`""`), []byte("---"), []byte("a: &a [*a]"), []byte("k8s\x00"),
		[]byte(podJSON),
		[]byte(`{"metadata":{"name":"x","finalizers":["a"]},"spec":{"finalizers":["kubernetes"]},"status":{"phase":"Active"}}`),
		[]byte(`{"metadata":{"generateName":"l"},"spec":{"limits":[{"type":"Container","max":{"cpu":"1"},"min":{"cpu":1e3},"maxLimitRequestRatio":{"cpu":"1e-9"}}]}}`),
		[]byte(`{"metadata":{"name":"there"},"target":{"kind":"Node","name":"n"}}`),
		[]byte(`[{"op":"replace","path":"/metadata/labels","value":{"a":"b"}},{"op":"test","path":"/spec","value":null}]`),
		[]byte(`{"spec":{"containers":[{"$patch":"delete","name":"c"}],"$setElementOrder/containers":[{"name":"c"}]}}`),
		[]byte(`{"metadata":{"managedFields":[{"manager":"a","operation":"Apply","fieldsV1":{"f:a":{"k:{}":{}}}}]}}`),
		[]byte(`{"gracePeriodSeconds":-1,"preconditions":{"uid":""},"dryRun":["All"],"propagationPolicy":"Orphan"}`),
		[]byte(strings.Repeat("[", 20000)), []byte(strings.Repeat(`{"a":`, 20000)),
	}
	return append(seeds, toProtobuf(t, newPod("p", withResources(quantities("cpu=1"), quantities("cpu=2")))))
}

func toProtobuf(t testing.TB, obj runtime.Object) []byte {
	t.Helper()
	scheme := newScheme()
	body, err := runtime.Encode(protobuf.NewSerializer(scheme, scheme), obj)
	if err != nil {
		t.Fatal(err)
	}
	return body
}

// TestRandomBodies sends random mutations of the seeds.
func TestRandomBodies(t *testing.T) {
	t.Parallel()
	seed := rand.Uint64()
	t.Logf("the seed is %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	ns := newNamespace(t, borough)
	createPod(t, borough, ns, newPod("there"))
	http := borough.HTTP(t)
	bodies := seeds(t)
	for _, body := range bodies {
		for choice := 14*4 - 5; choice < 2*14*4; choice++ { // each once: the patches, then the others
			sendRaw(t, http, ns, body, choice)
		}
	}
	for range 500 { // make attack sends many more
		sendRaw(t, http, ns, mutate(random, bodies), random.IntN(1<<16))
	}
	wantAnswer(t, http.Do(t, "GET", "/readyz", nil), 200)
}

func mutate(random *rand.Rand, bodies [][]byte) []byte {
	body := bytes.Clone(bodies[random.IntN(len(bodies))])
	for range 1 + random.IntN(4) {
		other := bodies[random.IntN(len(bodies))]
		if len(body) == 0 || len(other) == 0 {
			body = append(body, other...)
			continue
		}
		at := random.IntN(len(body))
		switch random.IntN(5) {
		case 0: // change a byte
			body[at] = byte(random.IntN(256))
		case 1: // truncate
			body = body[:at]
		case 2: // remove a part
			body = append(body[:at], body[at+random.IntN(len(body)-at):]...)
		case 3: // insert a part of another body
			from := random.IntN(len(other))
			piece := other[from:min(len(other), from+1+random.IntN(40))]
			body = append(body[:at], append(bytes.Clone(piece), body[at:]...)...)
		case 4: // insert an extreme value
			edges := []string{"null", "-1", "1e999", "9223372036854775808", "\xff\xff\xff\xff\x0f", "\x00", "\"\"", "{}", "\u2028", "1.5", "true"}
			body = append(body[:at], append([]byte(edges[random.IntN(len(edges))]), body[at:]...)...)
		}
	}
	return body
}

// FuzzBodies searches for bodies that break the server. Only the coverage of the
// client guides it. Run: go test -fuzz=FuzzBodies ./test/e2e.
func FuzzBodies(f *testing.F) {
	for i, body := range seeds(f) {
		f.Add(body, uint16(i))
	}
	f.Fuzz(func(t *testing.T, body []byte, choice uint16) {
		sendRaw(t, borough.HTTP(t), "default", body, int(choice))
	})
}
