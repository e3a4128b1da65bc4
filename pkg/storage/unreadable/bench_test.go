// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package unreadable

import (
	"context"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/apiserver/pkg/storage/etcd3"
	"k8s.io/apiserver/pkg/storage/value"
	"k8s.io/apiserver/pkg/storage/value/encrypt/identity"

	"github.com/borough-io/borough/pkg/apis/tenancy"
	"github.com/borough-io/borough/pkg/apis/tenancy/install"
	v1 "github.com/borough-io/borough/pkg/apis/tenancy/v1"
)

const benchKey = "/registry/tenancy.borough.io/pods/town/p"

// newPodStore returns a Store of Pods that only decodes, with an encoded Pod.
func newPodStore(tb testing.TB) (*Store, []byte) {
	tb.Helper()
	scheme := runtime.NewScheme()
	install.Install(scheme)
	codecs := serializer.NewCodecFactory(scheme)
	info, ok := runtime.SerializerInfoForMediaType(codecs.SupportedMediaTypes(), runtime.ContentTypeProtobuf)
	if !ok {
		tb.Fatal("there is no protobuf serializer")
	}
	codec := codecs.CodecForVersions(info.Serializer, codecs.UniversalDeserializer(), v1.SchemeGroupVersion, runtime.InternalGroupVersioner)
	s := newStore(Config{
		Resource: tenancy.Resource("pods"), PathPrefix: "/registry", ResourcePrefix: "/tenancy.borough.io/pods",
		Codec: codec, Transformer: identity.NewEncryptCheckTransformer(), Versioner: storage.APIObjectVersioner{},
		NewFunc: func() runtime.Object { return &tenancy.Pod{} }, Objects: NewObjects(),
	})
	pod := &tenancy.Pod{}
	pod.Namespace, pod.Name = "town", "p"
	for i := range 2 {
		container := corev1.Container{Name: fmt.Sprintf("c%d", i), Image: "example.com/image:1", Command: []string{"sleep", "1"}}
		for j := range 4 {
			container.Env = append(container.Env, corev1.EnvVar{Name: fmt.Sprintf("E%d", j), Value: "value"})
		}
		pod.Spec.Containers = append(pod.Spec.Containers, container)
	}
	data, err := runtime.Encode(codec, pod)
	if err != nil {
		tb.Fatal(err)
	}
	return s, data
}

// BenchmarkDecode compares the decoding of a Pod that can be read with that of the
// library.
func BenchmarkDecode(b *testing.B) {
	s, data := newPodStore(b)
	config := s.config
	library := etcd3.NewDefaultDecoder(config.Codec, config.Versioner)
	ctx := context.WithoutCancel(b.Context())
	newItem := func() runtime.Object { return &tenancy.Pod{} }
	list := func(ctx context.Context, transformer value.Transformer, decoder etcd3.Decoder) func(*testing.B) {
		return func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				out, _, err := transformer.TransformFromStorage(ctx, data, value.DefaultContext(benchKey))
				if err != nil {
					b.Fatal(err)
				}
				if _, err = decoder.DecodeListItem(ctx, out, 1, newItem); err != nil {
					b.Fatal(err)
				}
			}
		}
	}
	watch := func(ctx context.Context, transformer value.Transformer, codec runtime.Codec) func(*testing.B) {
		return func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				out, _, err := transformer.TransformFromStorage(ctx, data, value.DefaultContext(benchKey))
				if err != nil {
					b.Fatal(err)
				}
				if _, err = runtime.Decode(codec, out); err != nil {
					b.Fatal(err)
				}
			}
		}
	}
	b.Run("list/library", list(ctx, config.Transformer, library))
	b.Run("list/ours", list(context.WithValue(ctx, readerKey{}, &listing{}), transformer{config.Transformer, s}, decoder{library, s}))
	b.Run("watch/library", watch(ctx, config.Transformer, config.Codec))
	b.Run("watch/ours", watch(context.WithValue(ctx, readerKey{}, watching{}), transformer{config.Transformer, s}, watchCodec{config.Codec, s}))
}
