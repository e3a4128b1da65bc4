// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package limitranger_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/admission"

	boroughadmission "github.com/borough-io/borough/pkg/admission"
	"github.com/borough-io/borough/pkg/admission/limitranger"
	"github.com/borough-io/borough/pkg/apis/tenancy"
	v1 "github.com/borough-io/borough/pkg/apis/tenancy/v1"
	"github.com/borough-io/borough/pkg/generated/clientset/versioned"
	"github.com/borough-io/borough/pkg/generated/clientset/versioned/fake"
	"github.com/borough-io/borough/pkg/generated/informers/externalversions"
)

// handler is the plugin in both of its parts.
type handler interface {
	admission.MutationInterface
	admission.ValidationInterface
}

// initialize makes the plugin as the server does.
func initialize(informers externalversions.SharedInformerFactory, client versioned.Interface) (handler, error) {
	plugins := admission.NewPlugins()
	limitranger.Register(plugins)
	plugin, err := plugins.InitPlugin(limitranger.PluginName, nil, &boroughadmission.Initializer{Informers: informers, Client: client})
	if err != nil {
		return nil, err
	}
	return plugin.(handler), nil
}

// newPlugin makes a plugin whose cache may differ from what is in storage.
func newPlugin(t *testing.T, cache, storage *fake.Clientset) handler {
	t.Helper()
	informers := externalversions.NewSharedInformerFactory(cache, 0)
	plugin, err := initialize(informers, storage)
	if err != nil {
		t.Fatal(err)
	}
	informers.StartWithContext(t.Context())
	t.Cleanup(informers.Shutdown)
	informers.WaitForCacheSyncWithContext(t.Context())
	return plugin
}

func quantities(pairs ...string) corev1.ResourceList {
	list := corev1.ResourceList{}
	for i := 0; i < len(pairs); i += 2 {
		list[corev1.ResourceName(pairs[i])] = resource.MustParse(pairs[i+1])
	}
	return list
}

func limitRange(name string, items ...corev1.LimitRangeItem) *v1.LimitRange {
	return &v1.LimitRange{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "ns", UID: types.UID("uid-" + name), ResourceVersion: "1"},
		Spec:       corev1.LimitRangeSpec{Limits: items},
	}
}

// maxCPU makes a LimitRange that limits containers to an amount of CPU, without
// defaults.
func maxCPU(name, quantity string) *v1.LimitRange {
	return limitRange(name, corev1.LimitRangeItem{Type: corev1.LimitTypeContainer, Max: quantities("cpu", quantity)})
}

// defaults makes a LimitRange that gives defaults for CPU and memory.
func defaults(name string) *v1.LimitRange {
	return limitRange(name, corev1.LimitRangeItem{
		Type:           corev1.LimitTypeContainer,
		Default:        quantities("cpu", "2", "memory", "2Gi"),
		DefaultRequest: quantities("cpu", "1", "memory", "1Gi"),
	})
}

// newPod makes a Pod whose container is limited to an amount of CPU, if given.
func newPod(cpu ...string) *tenancy.Pod {
	pod := &tenancy.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "x", Namespace: "ns"},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "c"}}},
	}
	for _, quantity := range cpu {
		pod.Spec.Containers[0].Resources.Limits = quantities("cpu", quantity)
	}
	return pod
}

func podRequest(operation admission.Operation, subresource string, pod, old *tenancy.Pod) admission.Attributes {
	var oldObject runtime.Object
	if old != nil {
		oldObject = old
	}
	return admission.NewAttributesRecord(pod, oldObject, v1.SchemeGroupVersion.WithKind("Pod"), "ns", "x",
		v1.SchemeGroupVersion.WithResource("pods"), subresource, operation, nil, false, nil)
}

func create(pod *tenancy.Pod) admission.Attributes {
	return podRequest(admission.Create, "", pod, nil)
}

func objects(limitRanges ...*v1.LimitRange) []runtime.Object {
	var objects []runtime.Object
	for _, limitRange := range limitRanges {
		objects = append(objects, limitRange)
	}
	return objects
}

func message(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
