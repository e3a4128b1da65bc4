// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package podspec

import (
	"bytes"
	"math/rand"
	"reflect"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/encoding/protowire"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/apitesting/fuzzer"
	"k8s.io/apimachinery/pkg/api/resource"
	metafuzzer "k8s.io/apimachinery/pkg/apis/meta/fuzzer"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"

	"github.com/borough-io/borough/pkg/apis/tenancy"
	tenancyfuzzer "github.com/borough-io/borough/pkg/apis/tenancy/fuzzer"
	"github.com/borough-io/borough/pkg/apis/tenancy/install"
	v1 "github.com/borough-io/borough/pkg/apis/tenancy/v1"
)

// newCodec returns a codec of stored objects, with its factory.
func newCodec(tb testing.TB, mediaType string) (runtime.Codec, serializer.CodecFactory, *runtime.Scheme) {
	tb.Helper()
	scheme := runtime.NewScheme()
	install.Install(scheme)
	codecs := serializer.NewCodecFactory(scheme)
	info, ok := runtime.SerializerInfoForMediaType(codecs.SupportedMediaTypes(), mediaType)
	if !ok {
		tb.Fatalf("there is no serializer of %s", mediaType)
	}
	return codecs.CodecForVersions(info.Serializer, codecs.UniversalDeserializer(), v1.SchemeGroupVersion, runtime.InternalGroupVersioner), codecs, scheme
}

func encode(tb testing.TB, codec runtime.Codec, obj runtime.Object) []byte {
	tb.Helper()
	encoded, err := runtime.Encode(codec, obj)
	if err != nil {
		tb.Fatal(err)
	}
	return encoded
}

func newPod(name, cpu string) *tenancy.Pod {
	pod := &tenancy.Pod{}
	pod.Name, pod.Namespace = name, "ns"
	pod.Spec.Containers = []corev1.Container{{
		Name: "c", Image: "image",
		Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{"cpu": resource.MustParse(cpu)}},
	}}
	pod.Status.Phase = corev1.PodRunning
	return pod
}

// TestDecode decodes random Pods as the codec does, with a spec that is new and with one
// that is known.
func TestDecode(t *testing.T) {
	t.Parallel()
	codec, codecs, scheme := newCodec(t, runtime.ContentTypeProtobuf)
	seed := rand.Int63()
	t.Logf("seed %d", seed)
	fill := fuzzer.FuzzerFor(fuzzer.MergeFuzzerFuncs(metafuzzer.Funcs, tenancyfuzzer.NewFuncs(scheme)), rand.NewSource(seed), codecs)
	d := NewDecoder(codec)
	shared := 0
	for range 500 {
		var first, second tenancy.Pod
		fill.Fill(&first)
		fill.Fill(&second)
		second.Spec = first.Spec
		for _, pod := range []*tenancy.Pod{&first, &second} {
			encoded := encode(t, codec, pod)
			before := bytes.Clone(encoded)
			got := d.Decode(encoded)
			if got == nil {
				continue // too large
			}
			shared++
			want, _, err := codec.Decode(encoded, nil, nil)
			if err != nil {
				t.Fatal(err)
			}
			if !reflect.DeepEqual(got, want) {
				t.Fatalf("(-want +got)\n%s", cmp.Diff(want, got))
			}
			if !bytes.Equal(before, encoded) {
				t.Fatal("the encoded Pod was modified")
			}
		}
	}
	if shared < 100 {
		t.Errorf("only %d of 1000 Pods were decoded", shared)
	}
}

func TestShare(t *testing.T) {
	t.Parallel()
	codec, _, _ := newCodec(t, runtime.ContentTypeProtobuf)
	d := NewDecoder(codec)
	decode := func(pod *tenancy.Pod) *tenancy.Pod {
		t.Helper()
		got, ok := d.Decode(encode(t, codec, pod)).(*tenancy.Pod)
		if !ok {
			t.Fatalf("%s was not decoded", pod.Name)
		}
		return got
	}
	share := func(a, b *tenancy.Pod) bool { return &a.Spec.Containers[0] == &b.Spec.Containers[0] }
	first, equal, other := decode(newPod("a", "1")), decode(newPod("b", "1")), decode(newPod("c", "2"))
	if !share(first, equal) {
		t.Error("equal specs are not shared")
	}
	if share(first, other) {
		t.Error("different specs are shared")
	}
	if equal.Name != "b" || equal.Status.Phase != corev1.PodRunning {
		t.Errorf("got %+v", equal)
	}
}

// TestShareConcurrently decodes Pods with equal specs at the same time, as a watch cache may.
func TestShareConcurrently(t *testing.T) {
	t.Parallel()
	codec, _, _ := newCodec(t, runtime.ContentTypeProtobuf)
	encoded := encode(t, codec, newPod("a", "1"))
	for range 100 {
		d := NewDecoder(codec)
		var specs [4]*corev1.Container
		var decoding sync.WaitGroup
		for i := range specs {
			decoding.Go(func() { specs[i] = &d.Decode(encoded).(*tenancy.Pod).Spec.Containers[0] })
		}
		decoding.Wait()
		for _, spec := range specs {
			if spec != specs[0] {
				t.Fatal("equal specs that were decoded at the same time are not shared")
			}
		}
	}
}

// TestLeftToTheCodec has values that are not decoded, although the spec is known.
func TestLeftToTheCodec(t *testing.T) {
	t.Parallel()
	codec, _, _ := newCodec(t, runtime.ContentTypeProtobuf)
	inJSON, _, _ := newCodec(t, runtime.ContentTypeJSON)
	encoded := encode(t, codec, newPod("a", "1"))
	large := newPod("a", "1")
	large.Spec.Containers[0].Command = []string{strings.Repeat("x", maxSpecSize)}

	unknown := runtime.Unknown{}
	if err := unknown.Unmarshal(encoded[len(protobufPrefix):]); err != nil {
		t.Fatal(err)
	}
	with := func(raw []byte) []byte {
		changed := unknown
		changed.Raw = raw
		data, err := changed.Marshal()
		if err != nil {
			t.Fatal(err)
		}
		return append(bytes.Clone(protobufPrefix), data...)
	}
	spec, _, ok := cutSpec(encoded)
	if !ok {
		t.Fatal("the spec was not found")
	}
	twoSpecs := protowire.AppendBytes(protowire.AppendTag(bytes.Clone(unknown.Raw), specField, protowire.BytesType), spec)
	number := protowire.AppendVarint(protowire.AppendTag(nil, specField, protowire.VarintType), 1)
	invalidMetadata := protowire.AppendBytes(protowire.AppendTag(bytes.Clone(unknown.Raw), 1, protowire.BytesType), []byte{0xff})

	for name, value := range map[string][]byte{
		"empty":            {},
		"prefix":           protobufPrefix,
		"JSON":             encode(t, inJSON, newPod("a", "1")),
		"large spec":       encode(t, codec, large),
		"cut off":          encoded[:len(encoded)-1],
		"no spec":          with(nil),
		"two specs":        with(twoSpecs),
		"a number as spec": with(number),
		"invalid metadata": with(invalidMetadata),
		"other kind":       encode(t, codec, &tenancy.LimitRange{}),
	} {
		t.Run(name, func(t *testing.T) {
			d := NewDecoder(codec)
			if d.Decode(encoded) == nil {
				t.Fatal("the valid Pod was not decoded")
			}
			if got := d.Decode(value); got != nil {
				t.Errorf("got %+v", got)
			}
		})
	}
}

// FuzzShare decodes any values, with a spec that is new and with one that is known: what
// is decoded is what the codec decodes.
func FuzzShare(f *testing.F) {
	codec, _, _ := newCodec(f, runtime.ContentTypeProtobuf)
	f.Add(encode(f, codec, newPod("a", "1")))
	f.Add(encode(f, codec, &tenancy.Pod{}))
	f.Add(encode(f, codec, &tenancy.LimitRange{}))
	f.Fuzz(func(t *testing.T, encoded []byte) {
		d := NewDecoder(codec)
		for range 2 {
			got := d.Decode(encoded)
			if got == nil {
				continue
			}
			want, _, err := codec.Decode(encoded, nil, &tenancy.Pod{})
			if err != nil {
				t.Fatalf("decoded what the codec does not: %v", err)
			}
			if !reflect.DeepEqual(got, want) {
				t.Fatalf("(-want +got)\n%s", cmp.Diff(want, got))
			}
		}
	})
}

// BenchmarkDecode compares the decoding of a Pod with that of the codec.
func BenchmarkDecode(b *testing.B) {
	codec, _, _ := newCodec(b, runtime.ContentTypeProtobuf)
	encoded := encode(b, codec, newPod("a", "1"))
	b.Run("codec", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, _, err := codec.Decode(encoded, nil, &tenancy.Pod{}); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("shared", func(b *testing.B) {
		d := NewDecoder(codec)
		b.ReportAllocs()
		for b.Loop() {
			if d.Decode(encoded) == nil {
				b.Fatal("not decoded")
			}
		}
	})
}
