// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"mime"
	"strings"
	"testing"

	apidiscoveryv2 "k8s.io/api/apidiscovery/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/cbor"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"sigs.k8s.io/yaml"

	"github.com/borough-io/borough/pkg/apis/tenancy/install"
	v1 "github.com/borough-io/borough/pkg/apis/tenancy/v1"
	"github.com/borough-io/borough/test/harness"
)

func newScheme() *runtime.Scheme {
	scheme := runtime.NewScheme()
	install.Install(scheme)
	metav1.AddToGroupVersion(scheme, v1.SchemeGroupVersion)
	return scheme
}

// TestEncodings sends a Pod in each encoding and reads it back in each.
func TestEncodings(t *testing.T) {
	t.Parallel()
	http := borough.HTTP(t)
	scheme := newScheme()
	protoSerializer := protobuf.NewSerializer(scheme, scheme)
	cborSerializer := cbor.NewSerializer(scheme, scheme)
	encode := func(t *testing.T, encoder runtime.Encoder, pod *v1.Pod) []byte {
		t.Helper()
		data, err := runtime.Encode(encoder, pod)
		if err != nil {
			t.Fatal(err)
		}
		return data
	}
	decode := func(t *testing.T, decoder runtime.Decoder, data []byte) *v1.Pod {
		t.Helper()
		pod := &v1.Pod{}
		if _, _, err := decoder.Decode(data, nil, pod); err != nil {
			t.Fatalf("decode: %v\n%q", err, data)
		}
		return pod
	}
	encodings := map[string]struct {
		encode func(*testing.T, *v1.Pod) []byte
		decode func(*testing.T, []byte) *v1.Pod
	}{
		asJSON: {
			func(t *testing.T, pod *v1.Pod) []byte { return toJSON(t, pod) },
			func(t *testing.T, data []byte) *v1.Pod {
				pod := &v1.Pod{}
				if err := json.Unmarshal(data, pod); err != nil {
					t.Fatal(err)
				}
				return pod
			},
		},
		asYAML: {
			func(t *testing.T, pod *v1.Pod) []byte {
				data, err := yaml.Marshal(pod)
				if err != nil {
					t.Fatal(err)
				}
				return data
			},
			func(t *testing.T, data []byte) *v1.Pod {
				pod := &v1.Pod{}
				if err := yaml.UnmarshalStrict(data, pod); err != nil {
					t.Fatal(err)
				}
				return pod
			},
		},
		asProto: {
			func(t *testing.T, pod *v1.Pod) []byte { return encode(t, protoSerializer, pod) },
			func(t *testing.T, data []byte) *v1.Pod { return decode(t, protoSerializer, data) },
		},
	}
	if servesCBOR(t) {
		encodings["application/cbor"] = struct {
			encode func(*testing.T, *v1.Pod) []byte
			decode func(*testing.T, []byte) *v1.Pod
		}{
			func(t *testing.T, pod *v1.Pod) []byte { return encode(t, cborSerializer, pod) },
			func(t *testing.T, data []byte) *v1.Pod { return decode(t, cborSerializer, data) },
		}
	}

	path := api + "/namespaces/" + newNamespace(t, borough) + "/pods"
	for sent, encoding := range encodings {
		t.Run(sent, func(t *testing.T) {
			name := strings.ReplaceAll(strings.TrimPrefix(sent, "application/"), ".", "-")
			created := wantAnswer(t, http.Do(t, "POST", path, encoding.encode(t, newPod(name, withResources(nil, quantities("cpu=1")))),
				"Content-Type", sent, "Accept", sent), 201)
			want := encoding.decode(t, created.Body)
			wantEqual(t, "name", want.Name, name)
			for accepted, other := range encodings {
				answer := wantAnswer(t, http.Do(t, "GET", path+"/"+name, nil, "Accept", accepted), 200)
				if got := answer.Header.Get("Content-Type"); got != accepted {
					t.Errorf("got Content-Type %q, want %q", got, accepted)
				}
				got := other.decode(t, answer.Body)
				got.TypeMeta, want.TypeMeta = metav1.TypeMeta{}, metav1.TypeMeta{}
				wantEqual(t, "the Pod as "+accepted, got, want)
			}
		})
	}
	answer := http.Do(t, "GET", path, nil, "Accept", "text/csv")
	wantStatus(t, answer, 406, "Not Acceptable")
	answer = http.Do(t, "POST", path, []byte("a"), "Content-Type", "text/csv")
	wantStatus(t, answer, 415, "the body of the request was in an unknown format")
}

// servesCBOR reports whether the server supports CBOR, which a feature gate of
// the library enables.
func servesCBOR(t *testing.T) bool {
	answer := borough.HTTP(t).Do(t, "GET", api+"/namespaces/default", nil, "Accept", "application/cbor")
	return answer.Code == 200
}

// TestCBOR checks that no body in CBOR is accepted behind the feature gate, because the limits of
// requests are not checked in CBOR.
func TestCBOR(t *testing.T) {
	t.Parallel()
	b := harness.New(t)
	if err := b.StartServer(t.Context(), "--feature-gates=CBORServingAndStorage=true"); err != nil {
		t.Fatal(err)
	}
	const cborMap = "\xd9\xd9\xf7\xa0"
	client, namespace := b.HTTP(t), api+"/namespaces/default"
	for path, methods := range map[string][]string{
		api + "/namespaces": {"POST"}, namespace: {"PUT", "DELETE"}, namespace + "/pods": {"POST", "DELETE"},
		"/api/v1/namespaces/default/pods/p": {"PUT", "DELETE"}, "/apis/rbac.authorization.k8s.io/v1/clusterroles": {"POST", "DELETE"},
	} {
		for _, method := range methods {
			answer := client.Do(t, method, path, []byte(cborMap), "Content-Type", "application/cbor")
			wantStatus(t, answer, 415, "accepted media types include: application/json, application/yaml, application/vnd.kubernetes.protobuf")
		}
	}
	answer := client.Do(t, "PATCH", namespace+"?fieldManager=f", []byte(cborMap), "Content-Type", "application/apply-patch+cbor")
	wantStatus(t, answer, 415, "the body of the request was in an unknown format")
	wantAnswer(t, client.Do(t, "DELETE", namespace+"/pods", nil, "Content-Type", "application/cbor"), 200)
}

func TestGzip(t *testing.T) {
	t.Parallel()
	ns := newNamespace(t, borough)
	for i := range 120 { // the library compresses responses from 128 KiB
		createPod(t, borough, ns, newPod(fmt.Sprintf("p%d", i)))
	}
	http := borough.HTTP(t)
	path := api + "/namespaces/" + ns + "/pods"
	plain := wantAnswer(t, http.Do(t, "GET", path, nil, "Accept", asJSON), 200)
	answer := wantAnswer(t, http.Do(t, "GET", path, nil, "Accept", asJSON, "Accept-Encoding", "gzip"), 200)
	if got := answer.Header.Get("Content-Encoding"); got != "gzip" {
		t.Fatalf("got Content-Encoding %q for %d bytes, want gzip", got, len(plain.Body))
	}
	reader, err := gzip.NewReader(bytes.NewReader(answer.Body))
	if err != nil {
		t.Fatal(err)
	}
	unpacked, err := io.ReadAll(reader)
	if err != nil {
		t.Fatal(err)
	}
	var got, want v1.PodList
	if err := json.Unmarshal(unpacked, &got); err != nil {
		t.Fatal(err)
	}
	plain.JSON(t, &want)
	wantEqual(t, "the decompressed list", got.Items, want.Items)
}

func TestTables(t *testing.T) {
	t.Parallel()
	ns := newNamespace(t, borough)
	createPod(t, borough, ns, newPod("p"))
	createLimitRange(t, borough, ns, newLimitRange("l", item("Container", "max cpu=1")))
	http := borough.HTTP(t)
	for path, want := range map[string]struct {
		columns []string // including those of -o wide
		cells   []any    // before the age
	}{
		"/namespaces/" + ns:                        {[]string{"Name", "Status", "Age"}, []any{ns, "Active"}},
		"/namespaces/" + ns + "/limitranges":       {[]string{"Name", "Created At"}, []any{"l"}},
		"/namespaces/" + ns + "/pods":              {[]string{"Name", "Ready", "Status", "Restarts", "Age", "IP", "Node"}, []any{"p", "0/1", "Pending", "0"}},
		"/namespaces/" + ns + "/pods/p?watch=0":    {[]string{"Name", "Ready", "Status", "Restarts", "Age", "IP", "Node"}, []any{"p", "0/1", "Pending", "0"}},
		"/namespaces?labelSelector=no%3Dnamespace": {[]string{"Name", "Status", "Age"}, nil},
	} {
		t.Run(path, func(t *testing.T) {
			var table metav1.Table
			wantAnswer(t, http.Do(t, "GET", api+path, nil, "Accept", "application/json;as=Table;v=v1;g=meta.k8s.io"), 200).JSON(t, &table)
			wantEqual(t, "kind", table.Kind, "Table")
			var columns []string
			for _, column := range table.ColumnDefinitions {
				columns = append(columns, column.Name)
			}
			if len(columns) < len(want.columns) {
				t.Fatalf("got the columns %v, want %v", columns, want.columns)
			}
			wantEqual(t, "columns", columns[:len(want.columns)], want.columns)
			if want.cells == nil {
				wantEqual(t, "rows", len(table.Rows), 0)
				return
			}
			if len(table.Rows) != 1 {
				t.Fatalf("got %d rows, want 1", len(table.Rows))
			}
			for i, cell := range want.cells {
				wantEqual(t, columns[i], fmt.Sprint(table.Rows[0].Cells[i]), cell)
			}
			var object metav1.PartialObjectMetadata
			if err := json.Unmarshal(table.Rows[0].Object.Raw, &object); err != nil || object.Kind != "PartialObjectMetadata" || object.UID == "" {
				t.Errorf("got the object %s (%v), want the metadata", table.Rows[0].Object.Raw, err)
			}
		})
	}
}

func TestPartialObjectMetadata(t *testing.T) {
	t.Parallel()
	ns := newNamespace(t, borough)
	createPod(t, borough, ns, newPod("p", func(p *v1.Pod) { p.Labels = map[string]string{"a": "b"} }))
	http := borough.HTTP(t)
	path := api + "/namespaces/" + ns + "/pods"
	var one metav1.PartialObjectMetadata
	wantAnswer(t, http.Do(t, "GET", path+"/p", nil, "Accept", "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io"), 200).JSON(t, &one)
	wantEqual(t, "labels", one.Labels, map[string]string{"a": "b"})
	wantEqual(t, "kind", one.Kind, "PartialObjectMetadata")
	var list metav1.PartialObjectMetadataList
	wantAnswer(t, http.Do(t, "GET", path, nil, "Accept", "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"), 200).JSON(t, &list)
	if len(list.Items) != 1 || list.Items[0].Name != "p" {
		t.Errorf("got %+v, want the metadata of the Pod", list)
	}
}

func TestDiscovery(t *testing.T) {
	t.Parallel()
	http := borough.HTTP(t)
	var legacy metav1.APIResourceList
	wantAnswer(t, http.Do(t, "GET", api, nil), 200).JSON(t, &legacy)
	got := map[string]metav1.APIResource{}
	for _, resource := range legacy.APIResources {
		got[resource.Name] = resource
	}
	for name, want := range map[string]struct {
		kind       string
		namespaced bool
		short      []string
		verbs      string
	}{
		"namespaces":               {"Namespace", false, nil, "create delete get list patch update watch"},
		"namespaces/status":        {"Namespace", false, nil, "get patch update"},
		"namespaces/finalize":      {"Namespace", false, nil, ""},
		"namespacepurges":          {"NamespacePurge", true, nil, "create"},
		"namespacerequests":        {"NamespaceRequest", false, nil, "create"},
		"namespacetemplates":       {"NamespaceTemplate", false, []string{"nst"}, "create delete deletecollection get list patch update watch"},
		"projects":                 {"Project", false, nil, "get list watch"},
		"limitranges":              {"LimitRange", true, nil, "create delete deletecollection get list patch update watch"},
		"resourcequotas":           {"ResourceQuota", true, nil, "create delete deletecollection get list patch update watch"},
		"pods":                     {"Pod", true, nil, "create delete deletecollection get list patch update watch"},
		"pods/status":              {"Pod", true, nil, "get patch update"},
		"pods/binding":             {"Binding", true, nil, "create"},
		"pods/resize":              {"Pod", true, nil, "get patch update"},
		"pods/ephemeralcontainers": {"Pod", true, nil, "get patch update"},
	} {
		resource, ok := got[name]
		if !ok {
			t.Errorf("%s is not served", name)
			continue
		}
		wantEqual(t, name+": kind", resource.Kind, want.kind)
		wantEqual(t, name+": namespaced", resource.Namespaced, want.namespaced)
		wantEqual(t, name+": short names", resource.ShortNames, want.short)
		if want.verbs != "" {
			wantEqual(t, name+": verbs", strings.Join(resource.Verbs, " "), want.verbs)
		}
	}

	answer := wantAnswer(t, http.Do(t, "GET", "/apis", nil, "Accept", "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"), 200)
	if _, parameters, err := mime.ParseMediaType(answer.Header.Get("Content-Type")); err != nil || parameters["as"] != "APIGroupDiscoveryList" {
		t.Fatalf("got Content-Type %q, want aggregated discovery", answer.Header.Get("Content-Type"))
	}
	var aggregated apidiscoveryv2.APIGroupDiscoveryList
	answer.JSON(t, &aggregated)
	for _, group := range aggregated.Items {
		if group.Name == "tenancy.borough.io" && len(group.Versions) == 1 && len(group.Versions[0].Resources) == 8 {
			return
		}
	}
	t.Errorf("got %s, want it to have the seven kinds", answer.Body)
}

func TestOpenAPI(t *testing.T) {
	t.Parallel()
	http := borough.HTTP(t)

	var v2 struct {
		Definitions map[string]struct {
			Description string
			GVK         []metav1.GroupVersionKind `json:"x-kubernetes-group-version-kind"`
		}
		Paths map[string]any
	}
	wantAnswer(t, http.Do(t, "GET", "/openapi/v2", nil, "Accept", asJSON), 200).JSON(t, &v2)
	var v3 struct {
		Components struct {
			Schemas map[string]struct {
				Description string
				GVK         []metav1.GroupVersionKind `json:"x-kubernetes-group-version-kind"`
			}
		}
		Paths map[string]any
	}
	wantAnswer(t, http.Do(t, "GET", "/openapi/v3/apis/tenancy.borough.io/v1", nil, "Accept", asJSON), 200).JSON(t, &v3)

	for _, kind := range []string{"Namespace", "LimitRange", "Pod", "NamespacePurge", "NamespaceRequest", "Project"} {
		want := []metav1.GroupVersionKind{{Group: "tenancy.borough.io", Version: "v1", Kind: kind}}
		two := v2.Definitions["com.github.borough-io.borough.pkg.apis.tenancy.v1."+kind]
		wantEqual(t, kind+": kinds in v2", two.GVK, want)
		three := v3.Components.Schemas["com.github.borough-io.borough.pkg.apis.tenancy.v1."+kind]
		wantEqual(t, kind+": kinds in v3", three.GVK, want)
		if two.Description == "" || three.Description == "" {
			t.Errorf("%s has no description", kind)
		}
	}
	for _, path := range []string{"/namespaces/{name}", "/namespaces/{name}/finalize", "/namespaces/{namespace}/pods/{name}/binding"} {
		if v2.Paths[api+path] == nil || v3.Paths[api+path] == nil {
			t.Errorf("%s: in v2 %v, in v3 %v, want it in both", path, v2.Paths[api+path] != nil, v3.Paths[api+path] != nil)
		}
	}
	// kubectl requests protobuf.
	answer := wantAnswer(t, http.Do(t, "GET", "/openapi/v2", nil, "Accept", "application/com.github.proto-openapi.spec.v2@v1.0+protobuf"), 200)
	if len(answer.Body) == 0 {
		t.Error("OpenAPI v2 is empty as protobuf")
	}
}
