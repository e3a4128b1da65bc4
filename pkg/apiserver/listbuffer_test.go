// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apiserver/pkg/endpoints/handlers/responsewriters"

	"github.com/borough-io/borough/pkg/apis/coregroup"
	"github.com/borough-io/borough/pkg/apis/tenancy"
	"github.com/borough-io/borough/pkg/apis/tenancy/install"
	v1 "github.com/borough-io/borough/pkg/apis/tenancy/v1"
	"github.com/borough-io/borough/pkg/requestlimits"
)

// writes is a response that counts its writes.
type writes struct {
	*httptest.ResponseRecorder
	count int
}

// Write implements http.ResponseWriter.
func (w *writes) Write(p []byte) (int, error) {
	w.count++
	return w.ResponseRecorder.Write(p)
}

// namespaces returns a list of this many Namespaces, of about 200 bytes each.
func namespaces(count int) *tenancy.NamespaceList {
	list := &tenancy.NamespaceList{ListMeta: metav1.ListMeta{ResourceVersion: "7", Continue: "token"}}
	for i := range count {
		list.Items = append(list.Items, tenancy.Namespace{ObjectMeta: metav1.ObjectMeta{
			Name: fmt.Sprintf("team-%d", i), Labels: map[string]string{"example.com/team": fmt.Sprint(i)},
		}})
	}
	return list
}

// respond returns the response with an object that the library writes.
func respond(codecs runtime.NegotiatedSerializer, info runtime.SerializerInfo, obj runtime.Object, encoding string) *writes {
	w := &writes{ResponseRecorder: httptest.NewRecorder()}
	req := httptest.NewRequest(http.MethodGet, "/", nil)
	req.Header.Set("Accept-Encoding", encoding)
	responsewriters.SerializeObject(info.MediaType, codecs.EncoderForVersion(info.Serializer, v1.SchemeGroupVersion), w, req, http.StatusOK, obj)
	return w
}

// newCodecs returns codecs that encode a list object by object, as those of a server.
func newCodecs() (*runtime.Scheme, serializer.CodecFactory) {
	scheme := runtime.NewScheme()
	install.Install(scheme)
	return scheme, serializer.NewCodecFactory(scheme, serializer.WithStreamingCollectionEncodingToJSON(), serializer.WithStreamingCollectionEncodingToProtobuf())
}

// TestSerializers checks that the serializers of all groups buffer lists.
func TestSerializers(t *testing.T) {
	scheme, codecs := newCodecs()
	config := &ExtraConfig{limits: requestlimits.NewChecker(scheme)}
	list := namespaces(10)
	for _, info := range codecs.SupportedMediaTypes() {
		for _, group := range []string{tenancy.GroupName, coregroup.GroupName} {
			if got := respond(config.serializer(group, codecs), info, list, ""); got.count != 1 {
				t.Errorf("group %q: a list as %s was written in %d pieces", group, info.MediaType, got.count)
			}
		}
	}
}

// TestListSerializer compares responses with those of the library.
func TestListSerializer(t *testing.T) {
	_, codecs := newCodecs()
	for _, info := range codecs.SupportedMediaTypes() {
		for _, encoding := range []string{"", "gzip"} {
			for name, obj := range map[string]runtime.Object{
				"empty list": namespaces(0), "short list": namespaces(10), "long list": namespaces(5000),
				"object": &namespaces(1).Items[0],
			} {
				t.Run(fmt.Sprintf("%s as %s %s", name, info.MediaType, encoding), func(t *testing.T) {
					want := respond(codecs, info, obj, encoding)
					got := respond(listSerializer{codecs}, info, obj, encoding)
					body := plain(t, got)
					if want := plain(t, want); !bytes.Equal(want, body) {
						t.Errorf("got %d bytes, want %d", len(body), len(want))
					}
					for _, header := range []string{"Content-Type", "Content-Encoding", "Vary"} {
						if want, got := want.Header().Get(header), got.Header().Get(header); got != want {
							t.Errorf("%s is %q, want %q", header, got, want)
						}
					}
					if most := len(body)/listBufferSize + 1; encoding == "" && got.count > most {
						t.Errorf("%d bytes were written in %d pieces, want at most %d", len(body), got.count, most)
					}
				})
			}
		}
	}
}

// plain returns the body of a response, decompressed.
func plain(t *testing.T, response *writes) []byte {
	t.Helper()
	var body io.Reader = response.Body
	if response.Header().Get("Content-Encoding") == "gzip" {
		decompressed, err := gzip.NewReader(bytes.NewReader(response.Body.Bytes()))
		if err != nil {
			t.Fatal(err)
		}
		body = decompressed
	}
	data, err := io.ReadAll(body)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// TestListBufferErrors checks that errors of the encoder and of the connection are
// returned, and that the next list has nothing of the one that failed.
func TestListBufferErrors(t *testing.T) {
	failure := errors.New("failure")
	var w bytes.Buffer
	err := encodeBuffered(namespaces(0), &w, func(_ runtime.Object, w io.Writer) error {
		if _, err := w.Write([]byte("partial")); err != nil {
			return err
		}
		return failure
	})
	if !errors.Is(err, failure) || w.Len() > 0 {
		t.Errorf("the encoder failed: got %v, and %q was written", err, w.String())
	}
	encode := func(_ runtime.Object, w io.Writer) error {
		_, err := w.Write([]byte("list"))
		return err
	}
	reader, closed := io.Pipe()
	if err := reader.CloseWithError(failure); err != nil {
		t.Fatal(err)
	}
	if err := encodeBuffered(namespaces(0), closed, encode); !errors.Is(err, failure) {
		t.Errorf("the connection failed: got %v", err)
	}
	if err := encodeBuffered(namespaces(0), &w, encode); err != nil || w.String() != "list" {
		t.Errorf("got %q, %v", w.String(), err)
	}
}
