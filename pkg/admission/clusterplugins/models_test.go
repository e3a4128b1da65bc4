// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterplugins

import (
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/admission/plugin/policy/mutating/patch"
	apiopenapi "k8s.io/apiserver/pkg/endpoints/openapi"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/borough-io/borough/pkg/apis/tenancy/install"
	v1 "github.com/borough-io/borough/pkg/apis/tenancy/v1"
	"github.com/borough-io/borough/pkg/generated/openapi"
	"github.com/borough-io/borough/test/poll"
)

// TestModels reads objects as a MutatingAdmissionPolicy does. The client of the cluster has no
// OpenAPI documents.
func TestModels(t *testing.T) {
	scheme := runtime.NewScheme()
	install.Install(scheme)
	config := genericapiserver.DefaultOpenAPIV3Config(openapi.GetOpenAPIDefinitions, apiopenapi.NewDefinitionNamer(scheme))
	client := WithModels(fake.NewClientset(), config)
	manager := patch.NewTypeConverterManager(nil, client.Discovery().OpenAPIV3())
	go manager.Run(t.Context())
	kinds := []runtime.Object{
		&v1.Namespace{}, &v1.NamespaceTemplate{}, &v1.NamespaceRequest{}, &v1.Project{}, &v1.LimitRange{}, &v1.ResourceQuota{},
		&v1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "example.com/image:1"}}}},
		&v1.Binding{}, &v1.NamespacePurge{},
	}
	for _, object := range kinds {
		versions, _, err := scheme.ObjectKinds(object)
		if err != nil {
			t.Fatal(err)
		}
		kind := versions[0]
		object.GetObjectKind().SetGroupVersionKind(kind)
		poll.Eventually(t, func() string { // until the manager has the paths
			if manager.GetTypeConverter(kind) == nil {
				return "there is no model of " + kind.String()
			}
			return ""
		})
		if _, err := manager.GetTypeConverter(kind).ObjectToTyped(object); err != nil {
			t.Errorf("read %s: %v", kind, err)
		}
	}
}

// TestModelsAreBuiltApart builds documents from the same definitions at once, as the server does
// that serves them. The race detector finds what they share.
func TestModelsAreBuiltApart(t *testing.T) {
	config := genericapiserver.DefaultOpenAPIV3Config(openapi.GetOpenAPIDefinitions, apiopenapi.NewDefinitionNamer(runtime.NewScheme()))
	var builds sync.WaitGroup
	for range 4 {
		document, err := WithModels(fake.NewClientset(), config).Discovery().OpenAPIV3().Paths()
		if err != nil {
			t.Fatal(err)
		}
		for _, version := range document {
			builds.Go(func() {
				if _, err := version.Schema("application/json"); err != nil {
					t.Error(err)
				}
			})
		}
	}
	builds.Wait()
}
