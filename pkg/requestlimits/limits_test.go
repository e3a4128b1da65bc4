// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package requestlimits_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/apitesting/fuzzer"
	"k8s.io/apimachinery/pkg/api/resource"
	metafuzzer "k8s.io/apimachinery/pkg/apis/meta/fuzzer"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/randfill"
	"sigs.k8s.io/yaml"

	"github.com/borough-io/borough/pkg/apis/tenancy"
	"github.com/borough-io/borough/pkg/apis/tenancy/install"
	v1 "github.com/borough-io/borough/pkg/apis/tenancy/v1"
	. "github.com/borough-io/borough/pkg/requestlimits"
)

var (
	scheme  = newScheme()
	checker = NewChecker(scheme)
	podKind = v1.SchemeGroupVersion.WithKind("Pod")
)

func newScheme() *runtime.Scheme {
	scheme := runtime.NewScheme()
	install.Install(scheme)
	metav1.AddToGroupVersion(scheme, schema.GroupVersion{Version: "v1"})
	return scheme
}

// repeat returns n of the items, separated by commas.
func repeat(n int, item string) string {
	return strings.TrimSuffix(strings.Repeat(item+",", n), ",")
}

// entries returns n entries of a map in JSON.
func entries(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, `,"k%d":""`, i)
	}
	return b.String()[1:]
}

func nested(n int) string { return strings.Repeat("[", n) + strings.Repeat("]", n) }

func TestLimits(t *testing.T) {
	const (
		long     = "a quantity must have at most 100 characters"
		exponent = "the exponent of a quantity must be between -100 and 100"
		misread  = "a multiple of 1000E must be written with an exponent, such as 1e21"
		depth    = "objects and lists must be nested at most 100 deep"
	)
	tooLong := strings.Repeat("a", MaxNameLength+1)
	container := func(resources string) string {
		return `{"spec":{"containers":[{"name":"c","resources":` + resources + `}]}}`
	}
	for _, test := range []struct{ name, body, want string }{
		{"exponent", container(`{"limits":{"cpu":"1","memory":"1e30000000"}}`), "spec.containers[0].resources.limits[memory]: " + exponent},
		{"negative exponent", container(`{"requests":{"cpu":"1e-10000000"}}`), "spec.containers[0].resources.requests[cpu]: " + exponent},
		{"exponent of a number", container(`{"requests":{"cpu":1E+101}}`), "spec.containers[0].resources.requests[cpu]: " + exponent},
		{"exponent within", container(`{"requests":{"cpu":"1e100","memory":1e-100,"a":"100E","b":"1Ei"}}`), ""},
		{"exponent with zeros before it", container(`{"requests":{"cpu":"1e000000000000100"}}`), ""},
		{"exponent beyond int", container(`{"requests":{"cpu":"1e99999999999999999999"}}`), "spec.containers[0].resources.requests[cpu]: " + exponent},
		{"escaped", container(`{"requests":{"cpu":"1\u00653000"}}`), "spec.containers[0].resources.requests[cpu]: " + exponent},
		{"escaped name", container(`{"r\u0065quests":{"cpu":"1e3000"}}`), "spec.containers[0].resources.requests[cpu]: " + exponent},
		{"with space around it", container(`{"requests":{"cpu":" 1e3000 "}}`), "spec.containers[0].resources.requests[cpu]: " + exponent},
		{"given twice", container(`{"requests":{"cpu":"1e3000","cpu":"1"}}`), "spec.containers[0].resources.requests[cpu]: " + exponent},
		{"a multiple of 1000E", container(`{"requests":{"memory":"1000E"}}`), "spec.containers[0].resources.requests[memory]: " + misread},
		{"a multiple of 1000E, without a suffix", container(`{"requests":{"memory":"1000000000000000000000"}}`), "spec.containers[0].resources.requests[memory]: " + misread},
		{"a multiple of 1000E, with a smaller suffix", container(`{"requests":{"memory":"+002000000000000000M"}}`), "spec.containers[0].resources.requests[memory]: " + misread},
		{"large quantities", container(`{"requests":{"a":"1001E","b":"1e21","c":"1000Ei","d":"999E","e":"1000000000000000000001","f":"1000000000000000000000m"}}`), ""},
		{"length", container(`{"limits":{"cpu":"` + strings.Repeat("1", 101) + `"}}`), "spec.containers[0].resources.limits[cpu]: " + long},
		{"length of a number", container(`{"limits":{"cpu":0.` + strings.Repeat("1", 99) + `}}`), "spec.containers[0].resources.limits[cpu]: " + long},
		{"length within", container(`{"limits":{"cpu":"` + strings.Repeat("1", 100) + `"}}`), ""},
		{"no quantity", container(`{"limits":{"cpu":"1e"}}`), ""},
		{"size limit", `{"spec":{"volumes":[{"emptyDir":{"sizeLimit":"1e101"}}]}}`, "spec.volumes[0].emptyDir.sizeLimit: " + exponent},
		{"divisor", `{"spec":{"initContainers":[{"env":[{"valueFrom":{"resourceFieldRef":{"divisor":"1e101"}}}]}]}}`,
			"spec.initContainers[0].env[0].valueFrom.resourceFieldRef.divisor: " + exponent},
		{"status", `{"status":{"containerStatuses":[{"allocatedResources":{"cpu":"1e101"}}]}}`, "status.containerStatuses[0].allocatedResources[cpu]: " + exponent},
		{"limit range", `{"spec":{"limits":[{},{"max":{"cpu":"1e101"}}]}}`, "spec.limits[1].max[cpu]: " + exponent},
		{"list", `{"kind":"PodList","items":[{"spec":{"overhead":{"cpu":"1e101"}}}]}`, "items[0].spec.overhead[cpu]: " + exponent},
		{"internal type", `{"Spec":{"overhead":{"cpu":"1e101"}}}`, "Spec.overhead[cpu]: " + exponent},
		{"what only looks like a quantity", `{"metadata":{"name":"1e3000","labels":{"commit":"12e45678","limits":"1e3000"},"annotations":{"cpu":"1e3000"}},
			"spec":{"nodeSelector":{"cpu":"1e3000"},"containers":[{"image":"1e3000","args":["1e3000"],"env":[{"name":"sizeLimit","value":"1e3000"}]}]}}`, ""},

		{"containers", `{"spec":{"containers":[` + repeat(MaxContainers+1, "{}") + `]}}`, "spec.containers: must have at most 1000 elements"},
		{"init containers", `{"spec":{"initContainers":[` + repeat(MaxContainers+1, "{}") + `]}}`, "spec.initContainers: must have at most 1000 elements"},
		{"ephemeral containers", `{"spec":{"ephemeralContainers":[` + repeat(MaxContainers+1, "{}") + `]}}`, "spec.ephemeralContainers: must have at most 1000 elements"},
		{"containers within", `{"spec":{"containers":[` + repeat(MaxContainers, "{}") + `],"initContainers":[` + repeat(MaxContainers, "{}") + `]}}`, ""},
		{"limits", `{"spec":{"limits":[` + repeat(MaxLimitRangeItems+1, "{}") + `]}}`, "spec.limits: must have at most 1000 elements"},
		{"owners", `{"metadata":{"ownerReferences":[` + repeat(MaxOwners+1, "{}") + `]}}`, "metadata.ownerReferences: must have at most 500 elements"},
		{"name", `{"metadata":{"name":"` + strings.Repeat("a", MaxNameLength+1) + `"}}`, "metadata.name: must have at most 1000 bytes"},
		{"name prefix", `{"metadata":{"generateName":"` + strings.Repeat("a", MaxNameLength+1) + `"}}`, "metadata.generateName: must have at most 1000 bytes"},
		{"owner", `{"metadata":{"ownerReferences":[{},{"name":"` + strings.Repeat("a", MaxNameLength+1) + `"}]}}`, "metadata.ownerReferences[1].name: must have at most 1000 bytes"},
		{"names within", `{"metadata":{"name":"` + strings.Repeat("a", MaxNameLength) + `","annotations":{"name":"` + strings.Repeat("a", 2*MaxNameLength) + `"}},
			"spec":{"containers":[{"name":"` + strings.Repeat("a", MaxNameLength) + `","env":[{"name":"` + strings.Repeat("a", 2*MaxNameLength) + `"}]}]}}`, ""},
		{"name of a container", `{"spec":{"initContainers":[{"name":"` + tooLong + `"}]}}`, "spec.initContainers[0].name: must have at most 1000 bytes"},
		{"name of an ephemeral container", `{"spec":{"ephemeralContainers":[{"name":"` + tooLong + `"}]}}`, "spec.ephemeralContainers[0].name: must have at most 1000 bytes"},
		{"name of a volume", `{"spec":{"volumes":[{"name":"` + tooLong + `"}]}}`, "spec.volumes[0].name: must have at most 1000 bytes"},
		{"address of a host alias", `{"spec":{"hostAliases":[{"ip":"` + tooLong + `"}]}}`, "spec.hostAliases[0].ip: must have at most 1000 bytes"},
		{"key of a constraint", `{"spec":{"topologySpreadConstraints":[{"topologyKey":"` + tooLong + `"}]}}`, "spec.topologySpreadConstraints[0].topologyKey: must have at most 1000 bytes"},
		{"managers", `{"metadata":{"managedFields":[` + repeat(MaxManagers+1, "{}") + `]}}`, "metadata.managedFields: must have at most 200 elements"},
		{"another list", `{"metadata":{"finalizers":[` + repeat(MaxElements+1, `"a"`) + `]}}`, fmt.Sprintf("metadata.finalizers: must have at most %d elements", MaxElements)},
		{"unknown list", `{"foo":{"bar":[` + repeat(MaxElements+1, `"a"`) + `]}}`, fmt.Sprintf("foo.bar: must have at most %d elements", MaxElements)},
		{"map", `{"metadata":{"labels":{` + entries(MaxElements+1) + `}}}`, fmt.Sprintf("metadata.labels: must have at most %d entries", MaxElements)},
		{"the object itself", `{` + entries(MaxElements+1) + `}`, fmt.Sprintf("the object must have at most %d entries", MaxElements)},
		{"list and map within", `{"metadata":{"finalizers":[` + repeat(MaxElements, `"a"`) + `],"labels":{` + entries(MaxElements) + `}}}`, ""},
		{"depth", `{"a":` + nested(MaxDepth) + `}`, "a" + strings.Repeat("[0]", MaxDepth-1) + ": " + depth},
		{"depth within", `{"a":` + nested(MaxDepth-1) + `}`, ""},
		{"long name", `{"metadata":{"labels":{"` + strings.Repeat("a", 1000) + `":` + nested(MaxDepth) + `}}}`,
			"metadata.labels[" + strings.Repeat("a", 100) + "...]" + strings.Repeat("[0]", MaxDepth-3) + ": " + depth},
		{"no JSON", `{"spec":{"containers":`, ""},
		{"null", `null`, ""},
		{"empty", ``, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			want(t, "JSON", checker.CheckJSON([]byte(test.body)), test.want)
			want(t, "JSON as YAML", checker.CheckYAML([]byte(test.body)), test.want)
			if json.Valid([]byte(test.body)) {
				asYAML, err := yaml.JSONToYAML([]byte(test.body))
				if err != nil {
					t.Fatal(err)
				}
				// The conversion keeps the last of equal keys, rounds numbers and
				// quotes long keys.
				if test.name != "given twice" && test.name != "length of a number" && test.name != "long name" {
					want(t, "YAML", checker.CheckYAML(asYAML), test.want)
				}
			}
		})
	}
}

func want(t *testing.T, encoding string, err error, message string) {
	t.Helper()
	switch {
	case message == "" && err != nil:
		t.Errorf("%s: got %q, want no error", encoding, err)
	case message != "" && (err == nil || err.Error() != message):
		t.Errorf("%s: got %v, want %q", encoding, err, message)
	}
}

func TestYAMLAliases(t *testing.T) {
	var laughs strings.Builder
	laughs.WriteString("a0: &a0 [1,2,3,4,5,6,7,8,9]\n")
	for i := range 9 {
		fmt.Fprintf(&laughs, "a%d: &a%d [%s]\n", i+1, i+1, repeat(9, fmt.Sprintf("*a%d", i)))
	}
	const tooMany = "the YAML document must have at most 10000 values once its aliases are replaced"
	const tooLongTexts = "the aliases of the YAML document must expand to at most 200000 bytes of text"
	for _, test := range []struct{ name, body, want string }{
		{"billion laughs", laughs.String(), tooMany},
		{"merged", "a: &a {k: [" + repeat(2000, "1") + "]}\n" + "b: {<<: *a}\nc: {<<: [*a, *a, *a]}\nd: *a\n", tooMany},
		{"in itself", "a: &a [*a]", tooMany},
		{"long texts", "a: &a " + strings.Repeat("x", 1000) + "\nb: [" + repeat(300, "*a") + "]\n", tooLongTexts},
		{"long keys", "? &a " + strings.Repeat("x", 1000) + "\n: 1\nb: [" + repeat(300, "{*a : 1}") + "]\n", tooLongTexts},
		{"a long text besides an alias", "a: &a x\nb: *a\nc: " + strings.Repeat("x", 500000) + "\n", ""},
		{"a long text without aliases", "a: &a " + strings.Repeat("x*", 200000) + "\n", ""},
		{"an error after the document", laughs.String() + "...\n%x\n", "the YAML document has aliases and cannot be read: yaml: line 12: found unknown directive name"},
		{"an error, without an anchor", "a: '*'\n...\n%x\n", ""},
		{"few", "a: &a {cpu: 1}\nspec: {containers: [{resources: {limits: *a, requests: *a}}]}", ""},
		{"brings a quantity", "a: &a {cpu: 1e3000}\nspec: {overhead: *a}", "spec.overhead[cpu]: the exponent of a quantity must be between -100 and 100"},
		{"merges a quantity", `{"a": &a {"limits": {"cpu": "1e3000"}}, "spec": {"resources": {"<<": {"limits": {"cpu": 1}}, <<: *a}}}`,
			"spec.resources.limits[cpu]: the exponent of a quantity must be between -100 and 100"},
		{"base64", "spec: {overhead: {cpu: !!binary MWUzMDAw}}", "spec.overhead[cpu]: the exponent of a quantity must be between -100 and 100"},
		{"an asterisk", "a: '*'\nb: [" + repeat(20000, "1")[:19999] + "]", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			want(t, "YAML", checker.CheckYAML([]byte(test.body)), test.want)
		})
	}
}

func TestStrategicMergePatch(t *testing.T) {
	patch := func(n int) []byte {
		return []byte(`{"spec":{"containers":[{"name":"c","env":[` + repeat(n-1, `{"name":"a"}`) + `]}]}}`)
	}
	want(t, "within", checker.CheckStrategicMergePatch(patch(MaxPatchElements)), "")
	want(t, "entries", checker.CheckStrategicMergePatch([]byte(`{`+entries(MaxElements+1)+`}`)), "the strategic merge patch must have at most 10000 entries")
	want(t, "beyond", checker.CheckStrategicMergePatch(patch(MaxPatchElements+1)), "the lists of a strategic merge patch must have at most 1000 elements together")
}

func TestJSONPatch(t *testing.T) {
	patch := func(n int) []byte {
		return []byte("[" + repeat(n, `{"op":"add","path":"/metadata/annotations/a","value":"1e3000"}`) + "]")
	}
	want(t, "within", checker.CheckJSONPatch(patch(MaxPatchOperations)), "")
	want(t, "beyond", checker.CheckJSONPatch(patch(MaxPatchOperations+1)), "the JSON patch must have at most 1000 elements")
	want(t, "deep", checker.CheckJSONPatch([]byte(`[{"value":`+nested(MaxDepth)+`}]`)), "[0].value"+strings.Repeat("[0]", MaxDepth-2)+": objects and lists must be nested at most 100 deep")
}

// TestProtobuf checks limits that only protobuf can exceed.
func TestProtobuf(t *testing.T) {
	pod := &v1.Pod{}
	for name, test := range map[string]struct {
		body []byte
		want string
	}{
		"spec twice": {encode(t, pod, 0x12, 0), "spec: must be given at most once"},
		"owner": {encode(t, &v1.Pod{ObjectMeta: metav1.ObjectMeta{OwnerReferences: []metav1.OwnerReference{{Name: strings.Repeat("a", MaxNameLength+1)}}}}),
			"metadata.ownerReferences[0].name: must have at most 1000 bytes"},
		"name":      {encode(t, &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "\xff"}}), "metadata.name: must be valid UTF-8"},
		"groups":    {encode(t, pod, bytes.Repeat([]byte{0x0b}, 200)...), ""},
		"malformed": {encode(t, pod, 0xff), ""},
		"no object": {[]byte("k8s\x00\xff"), ""},
		"no prefix": {[]byte("hello"), ""},
	} {
		t.Run(name, func(t *testing.T) {
			want(t, "protobuf", checker.CheckProtobuf(test.body, podKind), test.want)
		})
	}
}

// encode returns the object in protobuf with more bytes at the end of its fields.
func encode(t testing.TB, obj runtime.Object, more ...byte) []byte {
	t.Helper()
	raw, err := obj.(interface{ Marshal() ([]byte, error) }).Marshal()
	if err != nil {
		t.Fatal(err)
	}
	body, err := (&runtime.Unknown{Raw: append(raw, more...)}).Marshal()
	if err != nil {
		t.Fatal(err)
	}
	return append([]byte("k8s\x00"), body...)
}

func TestLimitErrors(t *testing.T) {
	var errs field.ErrorList
	for i := range MaxErrors {
		errs = append(errs, field.Required(field.NewPath("a").Index(i), ""))
	}
	if got := LimitErrors(errs); len(got) != MaxErrors {
		t.Errorf("got %d errors, want all %d", len(got), MaxErrors)
	}
	errs = append(errs, errs[0], errs[1])
	got := LimitErrors(errs)
	if len(got) != MaxErrors+1 {
		t.Fatalf("got %d errors, want %d", len(got), MaxErrors+1)
	}
	if got, want := got[MaxErrors].Error(), ": Too many: 102: only the first 100 errors are shown"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := LimitErrors(field.ErrorList{errs[0], errs[1], errs[0]}); len(got) != 2 {
		t.Errorf("got %v, want each error once", got)
	}
}

// FuzzObjects fills objects of all kinds at random, in all encodings. They are
// within the limits, and beyond them as soon as any one of their quantities is.
func FuzzObjects(f *testing.F) {
	for seed := range int64(20) {
		f.Add(seed)
	}
	// Both are ten characters long, so one can take the place of the other in
	// protobuf too.
	const modest, huge = "1234567890", "1e30000000"
	f.Fuzz(func(t *testing.T, seed int64) {
		quantities := 0
		fill := fuzzer.FuzzerFor(fuzzer.MergeFuzzerFuncs(metafuzzer.Funcs, func(serializer.CodecFactory) []any {
			return []any{func(q *resource.Quantity, _ randfill.Continue) {
				quantities++
				*q = resource.MustParse(modest)
			}}
		}), rand.NewSource(seed), serializer.NewCodecFactory(scheme))
		for _, kind := range []string{"Pod", "PodList", "LimitRange", "LimitRangeList", "Namespace", "NamespaceList", "Binding", "NamespacePurge", "NamespaceRequest", "Project", "ProjectList"} {
			gvk := v1.SchemeGroupVersion.WithKind(kind)
			obj, err := scheme.New(gvk)
			if err != nil {
				t.Fatal(err)
			}
			quantities = 0
			fill.Fill(obj)
			obj.GetObjectKind().SetGroupVersionKind(gvk)
			asJSON, err := json.Marshal(obj)
			if err != nil {
				t.Fatal(err)
			}
			asYAML, err := yaml.JSONToYAML(asJSON)
			if err != nil {
				t.Fatal(err)
			}
			for _, encoding := range []struct {
				name  string
				body  []byte
				check func([]byte) error
			}{
				{"JSON", asJSON, checker.CheckJSON},
				{"YAML", asYAML, checker.CheckYAML},
				{"protobuf", encode(t, obj), func(body []byte) error { return checker.CheckProtobuf(body, gvk) }},
			} {
				want(t, kind+" in "+encoding.name, encoding.check(encoding.body), "")
				found, rest := 0, encoding.body
				for {
					i := bytes.Index(rest, []byte(modest))
					if i < 0 {
						break
					}
					found++
					rest = rest[i+len(modest):]
					hostile := bytes.Clone(encoding.body)
					copy(hostile[len(hostile)-len(rest)-len(modest):], huge)
					if err := encoding.check(hostile); err == nil || !strings.Contains(err.Error(), "the exponent of a quantity") {
						t.Errorf("%s in %s: quantity %d of %s is not checked: %v", kind, encoding.name, found, hostile, err)
					}
				}
				// Fields that are nil or zero are left out.
				if found > quantities || quantities > 0 && found == 0 {
					t.Errorf("%s in %s: found %d of %d quantities", kind, encoding.name, found, quantities)
				}
			}
		}
	})
}

// TestRepeatedFields checks the bound on fields that a patch has more than once.
func TestRepeatedFields(t *testing.T) {
	for name, check := range map[string]func([]byte) error{
		"merge patch": checker.CheckMergePatch, "strategic merge patch": checker.CheckStrategicMergePatch,
		"JSON patch": func(body []byte) error { return checker.CheckJSONPatch(fmt.Appendf(nil, `[{"value":%s}]`, body)) },
	} {
		object := func(n int) string { return `{"a":{` + repeat(n+1, `"b":1`) + `},"b":{"b":1}}` }
		if err := check([]byte(object(MaxRepeatedFields))); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if err := check([]byte(object(MaxRepeatedFields + 1))); err == nil || !strings.Contains(err.Error(), "a: must not repeat more than 10 fields") {
			t.Errorf("%s: got %v", name, err)
		}
		// Fields of different objects count together.
		if err := check([]byte(`{"a":` + object(MaxRepeatedFields) + `,"a":1}`)); err == nil {
			t.Errorf("%s: fields of several objects are not counted together", name)
		}
	}
}

// BenchmarkCheckJSON checks an ordinary Pod with its managed fields.
func BenchmarkCheckJSON(b *testing.B) {
	body := []byte(`{"apiVersion":"tenancy.borough.io/v1","kind":"Pod","metadata":{"name":"p","labels":{"app":"web","commit":"12e45678"},
		"managedFields":[{"manager":"m","operation":"Update","apiVersion":"tenancy.borough.io/v1","time":"2026-01-01T00:00:00Z","fieldsType":"FieldsV1",
		"fieldsV1":{"f:spec":{"f:containers":{"k:{\"name\":\"c\"}":{".":{},"f:image":{},"f:name":{},"f:resources":{".":{},"f:limits":{".":{},"f:cpu":{},"f:memory":{}}}}}}}}]},
		"spec":{"containers":[{"name":"c","image":"registry.example.com/web:1.2.3","resources":{"limits":{"cpu":"500m","memory":"1Gi"},"requests":{"cpu":"250m","memory":"512Mi"}},
		"env":[{"name":"A","value":"1"},{"name":"B","valueFrom":{"fieldRef":{"fieldPath":"metadata.name"}}}],"ports":[{"containerPort":80}]}]}}`)
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	for b.Loop() {
		if err := checker.CheckJSON(body); err != nil {
			b.Fatal(err)
		}
	}
}

// TestCheckObject checks objects that were not decoded.
func TestCheckObject(t *testing.T) {
	pod := func(change func(*tenancy.Pod)) runtime.Object {
		pod := &tenancy.Pod{}
		change(pod)
		return pod
	}
	labels := map[string]string{}
	for i := range MaxElements + 1 {
		labels[fmt.Sprint(i)] = ""
	}
	for want, object := range map[string]runtime.Object{
		"": pod(func(p *tenancy.Pod) { p.Spec.Containers = make([]corev1.Container, MaxContainers) }),
		"spec.initContainers: must have at most 1000 elements": pod(func(p *tenancy.Pod) {
			p.Spec.InitContainers = make([]corev1.Container, MaxContainers+1)
		}),
		"spec.volumes[1].projected.sources[0].secret.items: must have at most 10000 elements": pod(func(p *tenancy.Pod) {
			secret := &corev1.SecretProjection{Items: make([]corev1.KeyToPath, MaxElements+1)}
			p.Spec.Volumes = []corev1.Volume{{}, {VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{{Secret: secret}}}}}}
		}),
		"metadata.labels: must have at most 10000 entries":         pod(func(p *tenancy.Pod) { p.Labels = labels }),
		"metadata.name: must have at most 1000 bytes":              pod(func(p *tenancy.Pod) { p.Name = strings.Repeat("a", MaxNameLength+1) }),
		"metadata.ownerReferences: must have at most 500 elements": pod(func(p *tenancy.Pod) { p.OwnerReferences = make([]metav1.OwnerReference, MaxOwners+1) }),
		"spec.limits: must have at most 1000 elements":             &tenancy.LimitRange{Spec: corev1.LimitRangeSpec{Limits: make([]corev1.LimitRangeItem, MaxLimitRangeItems+1)}},
		"spec.finalizers: must have at most 10000 elements":        &tenancy.Namespace{Spec: tenancy.NamespaceSpec{Finalizers: make([]tenancy.FinalizerName, MaxElements+1)}},
	} {
		if err := CheckObject(object); err == nil && want != "" || err != nil && err.Error() != want {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}
