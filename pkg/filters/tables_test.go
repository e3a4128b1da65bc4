// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package filters

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/types"
	auditinternal "k8s.io/apiserver/pkg/apis/audit"
	"k8s.io/apiserver/pkg/audit"
	"k8s.io/apiserver/pkg/endpoints/handlers"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/borough-io/borough/pkg/apis/tenancy"
	v1 "github.com/borough-io/borough/pkg/apis/tenancy/v1"
	"github.com/borough-io/borough/pkg/registry/registrytest"
	"github.com/borough-io/borough/pkg/storage/storagetest"
)

const tableType = "application/json;as=Table;v=v1;g=meta.k8s.io"

// sized is a ResponseWriter that records the size of the largest write, and the
// object in the audit log.
type sized struct {
	*httptest.ResponseRecorder
	largest int
	audited string
}

// ProcessEvents implements audit.Sink.
func (s *sized) ProcessEvents(events ...*auditinternal.Event) bool {
	for _, event := range events {
		if event.ResponseObject != nil {
			s.audited = string(event.ResponseObject.Raw)
		}
	}
	return true
}

func (s *sized) Write(data []byte) (int, error) {
	s.largest = max(s.largest, len(data))
	return s.ResponseRecorder.Write(data)
}

// lists returns the library's handler for lists of the resource.
func lists(r *registrytest.Registry, storage rest.Lister, kind, resource string) http.Handler {
	return handlers.ListResource(storage, nil, &handlers.RequestScope{
		Namer:            handlers.ContextBasedNaming{Namer: noNames{}},
		Serializer:       serializer.NewCodecFactory(r.Scheme),
		ParameterCodec:   metav1.ParameterCodec,
		Convertor:        r.Scheme,
		TableConvertor:   storage,
		Kind:             v1.SchemeGroupVersion.WithKind(kind),
		Resource:         v1.SchemeGroupVersion.WithResource(resource),
		MetaGroupVersion: metav1.SchemeGroupVersion,
	}, false, 0)
}

type noNames struct{}

func (noNames) Name(runtime.Object) (string, error)      { return "", nil }
func (noNames) Namespace(runtime.Object) (string, error) { return "", nil }

// get sends a list request in the Namespace.
func get(t *testing.T, handler http.Handler, namespace, resource, query, accept, encoding string, level auditinternal.Level) *sized {
	t.Helper()
	req := httptest.NewRequest(http.MethodGet, "/apis/tenancy.borough.io/v1/"+resource+"?"+query, nil)
	req.Header.Set("Accept", accept)
	req.Header.Set("Accept-Encoding", encoding)
	ctx := request.WithRequestInfo(t.Context(), &request.RequestInfo{
		IsResourceRequest: true, Verb: "list", APIGroup: tenancy.GroupName, APIVersion: "v1", Namespace: namespace, Resource: resource,
	})
	ctx = audit.WithAuditContext(ctx)
	w := &sized{ResponseRecorder: httptest.NewRecorder()}
	event := audit.AuditContextFrom(ctx)
	if err := event.Init(audit.RequestAuditConfig{Level: level, OmitManagedFields: true}, w); err != nil {
		t.Fatal(err)
	}
	handler.ServeHTTP(w, req.WithContext(ctx))
	event.ProcessEventStage(ctx, auditinternal.StageResponseComplete)
	return w
}

// TestStreamedTables compares the responses with those of the library.
func TestStreamedTables(t *testing.T) {
	r := registrytest.New(t, storagetest.StartEmbedded(t))
	const pods = 20
	for i := range pods {
		r.CreatePod(t, fmt.Sprintf("p%03d", i), func(p *tenancy.Pod) {
			p.Annotations = map[string]string{"example.com/a": strings.Repeat("<", 1000)}
			p.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "m", Operation: "Update", APIVersion: "v1", FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1("{}")}}
			p.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "K", Name: "n", UID: types.UID("u")}}
		})
	}
	r.CreateLimitRange(t, "l")
	r.CreateQuota(t, "q", corev1.ResourceList{corev1.ResourcePods: resource.MustParse("100")})
	codecs := serializer.NewCodecFactory(r.Scheme)
	const maxWrite = 20_000 // more than a row
	tables := 0
	kinds := map[string]struct {
		kind    string
		storage rest.Lister
	}{
		"pods": {"Pod", r.Pods}, "limitranges": {"LimitRange", r.LimitRanges}, "resourcequotas": {"ResourceQuota", r.Quotas}, "namespaces": {"Namespace", r.Namespaces},
	}
	for _, kind := range tenancy.NamespacedKinds() {
		if kinds[kind.Resource].kind != kind.Kind {
			t.Errorf("%s is not tested", kind.Kind)
		}
	}
	for resource, kind := range kinds {
		library := lists(r, kind.storage, kind.kind, resource)
		streamed := WithStreamedTables(library, r.Scheme, codecs)
		namespace := r.Namespace
		if resource == "namespaces" {
			namespace = ""
		}
		for _, accept := range []string{
			tableType,
			"application/json;as=Table;v=v1beta1;g=meta.k8s.io",
			"application/json;as=Table;v=v2;g=meta.k8s.io,application/json;as=Table;v=v1beta1;g=meta.k8s.io,application/json",
			"application/json;as=Table;v=v2;g=meta.k8s.io",
			"application/json;q=0.9," + tableType,
			tableType + ";q=0.1,application/json",
			"application/yaml;as=Table;v=v1;g=meta.k8s.io",
			"application/vnd.kubernetes.protobuf;as=Table;v=v1;g=meta.k8s.io,application/json",
			"application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io",
			"application/json", "", "text/plain",
		} {
			for i, query := range []string{
				"", "limit=2", "resourceVersion=x", "includeObject=None", "includeObject=Metadata", "includeObject=Object", "includeObject=Other",
				"fieldSelector=metadata.name%3Dnone", "pretty=true",
			} {
				for _, level := range []auditinternal.Level{auditinternal.LevelNone, auditinternal.LevelRequestResponse} {
					for _, encoding := range []string{"", "gzip"} {
						if accept != tableType && (i > 2 || level != auditinternal.LevelNone || encoding != "") {
							continue
						}
						name := fmt.Sprintf("%s?%s as %q, encoding %q, audit %s", resource, query, accept, encoding, level)
						want := get(t, library, namespace, resource, query, accept, encoding, level)
						got := get(t, streamed, namespace, resource, query, accept, encoding, level)
						wantBody, gotBody := body(t, want), body(t, got)
						if got.Code != want.Code || gotBody != wantBody {
							t.Fatalf("%s: got %d, want %d (-want +got):\n%s", name, got.Code, want.Code, cmp.Diff(wantBody, gotBody))
						}
						if diff := cmp.Diff(want.Header(), got.Header()); diff != "" {
							t.Fatalf("%s: headers (-want +got):\n%s", name, diff)
						}
						if diff := cmp.Diff(ages.ReplaceAllString(want.audited, ""), ages.ReplaceAllString(got.audited, "")); diff != "" {
							t.Fatalf("%s: the audit log (-want +got):\n%s", name, diff)
						}
						if !strings.HasPrefix(gotBody, `{"kind":"Table"`) || level == auditinternal.LevelRequestResponse || encoding != "" {
							continue
						}
						tables++
						if got.largest > maxWrite {
							t.Errorf("%s: wrote %d of %d bytes at once", name, got.largest, got.Body.Len())
						}
					}
				}
			}
		}
	}
	if tables < 30 {
		t.Errorf("%d responses were Tables", tables)
	}
}

var ages = regexp.MustCompile(`\b(\d+[smh])+\b`)

// body returns the body of a response without the ages of objects. The library
// indents errors for a client that accepts only Tables.
func body(t *testing.T, response *sized) string {
	t.Helper()
	data := response.Body.Bytes()
	if response.Header().Get("Content-Encoding") == "gzip" {
		reader, err := gzip.NewReader(bytes.NewReader(data))
		if err != nil {
			t.Fatal(err)
		}
		if data, err = io.ReadAll(reader); err != nil {
			t.Fatal(err)
		}
	}
	if response.Code != http.StatusOK {
		var compact bytes.Buffer
		if json.Compact(&compact, data) == nil {
			data = compact.Bytes()
		}
	}
	return ages.ReplaceAllString(string(data), "AGE")
}
