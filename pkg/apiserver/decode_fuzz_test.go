// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"encoding/json"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/borough-io/borough/pkg/apis/tenancy"
	v1 "github.com/borough-io/borough/pkg/apis/tenancy/v1"
	"github.com/borough-io/borough/pkg/apis/tenancy/validation"
	corevalidation "github.com/borough-io/borough/pkg/corepod/validation"
	"github.com/borough-io/borough/pkg/requestlimits"
	"github.com/borough-io/borough/test/attack"
)

// FuzzDecode decodes bodies as the server does, in each encoding and as each
// kind, with defaults and validation. What has been decoded survives being
// stored.
func FuzzDecode(f *testing.F) {
	scheme := NewScheme()
	codecs := limitedSerializer{serializer.NewCodecFactory(scheme), requestlimits.NewChecker(scheme)}
	infos := codecs.SupportedMediaTypes()
	kinds := []string{"Pod", "LimitRange", "Namespace", "NamespacePurge", "Binding", "PodList", "NamespaceRequest", "Project"}
	internal := schema.GroupVersion{Group: tenancy.GroupName, Version: runtime.APIVersionInternal}
	stored, ok := runtime.SerializerInfoForMediaType(infos, runtime.ContentTypeProtobuf)
	if !ok {
		f.Fatal("the server does not speak protobuf")
	}
	encoder := codecs.EncoderForVersion(stored.Serializer, v1.SchemeGroupVersion)
	decoder := codecs.DecoderToVersion(stored.Serializer, internal)

	for i, body := range attack.Bodies() {
		f.Add(body, uint8(i%len(kinds)), uint8(i%len(infos)))
		var object runtime.Unknown
		if json.Unmarshal(body, &object.TypeMeta) != nil {
			continue
		}
		decoded, _, err := codecs.DecoderToVersion(infos[0].Serializer, internal).Decode(body, nil, nil)
		if err != nil {
			continue
		}
		for i, info := range infos {
			encoded, err := runtime.Encode(codecs.EncoderForVersion(info.Serializer, v1.SchemeGroupVersion), decoded)
			if err != nil {
				f.Fatal(err)
			}
			f.Add(encoded, uint8(0), uint8(i))
		}
	}
	f.Fuzz(func(t *testing.T, body []byte, kind, encoding uint8) {
		info := infos[int(encoding)%len(infos)]
		gvk := v1.SchemeGroupVersion.WithKind(kinds[int(kind)%len(kinds)])
		if info.StrictSerializer != nil {
			// What the strict decoder adds are errors.
			_, _, _ = codecs.DecoderToVersion(info.StrictSerializer, internal).Decode(body, &gvk, nil)
		}
		object, _, err := codecs.DecoderToVersion(info.Serializer, internal).Decode(body, &gvk, nil)
		if err != nil {
			return
		}
		validate(object)
		data, err := runtime.Encode(encoder, object)
		if err != nil {
			return // a quantity, say, that protobuf has no form for
		}
		again, _, err := decoder.Decode(data, nil, nil)
		if err != nil {
			t.Fatalf("what was decoded can't be read once it is stored: %v\n%+v", err, object)
		}
		if !apiequality.Semantic.DeepEqual(object, again) {
			t.Errorf("what was decoded is something else once it is stored:\n%+v\n%+v", object, again)
		}
	})
}

func validate(object runtime.Object) field.ErrorList {
	switch object := object.(type) {
	case *tenancy.Pod:
		pod := (*corev1.Pod)(object)
		return append(corevalidation.ValidatePodCreate(pod), corevalidation.ValidatePodUpdate(pod, pod)...)
	case *tenancy.LimitRange:
		return validation.ValidateLimitRange(object)
	case *tenancy.Namespace:
		return validation.ValidateNamespace(object)
	case *tenancy.NamespacePurge:
		return validation.ValidateNamespacePurge(object)
	case *tenancy.NamespaceRequest:
		return validation.ValidateNamespaceRequest(object)
	case *tenancy.Binding:
		return corevalidation.ValidatePodBinding((*corev1.Binding)(object))
	}
	return nil
}
