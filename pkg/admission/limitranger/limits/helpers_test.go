// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package limits_test

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/borough-io/borough/pkg/apis/tenancy/v1"
)

// quantities makes a ResourceList of pairs of name and quantity.
func quantities(pairs ...string) corev1.ResourceList {
	list := corev1.ResourceList{}
	for i := 0; i < len(pairs); i += 2 {
		list[corev1.ResourceName(pairs[i])] = resource.MustParse(pairs[i+1])
	}
	return list
}

// limitRange makes a LimitRange without the defaults that decoding sets.
func limitRange(name string, items ...corev1.LimitRangeItem) *v1.LimitRange {
	return &v1.LimitRange{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "ns"},
		Spec:       corev1.LimitRangeSpec{Limits: items},
	}
}

// needs makes the resources of a container; a nil list is not specified.
func needs(requests, limits corev1.ResourceList) corev1.ResourceRequirements {
	return corev1.ResourceRequirements{Requests: requests, Limits: limits}
}

func container(name string, resources corev1.ResourceRequirements) corev1.Container {
	return corev1.Container{Name: name, Resources: resources}
}

func sidecar(name string, resources corev1.ResourceRequirements) corev1.Container {
	always := corev1.ContainerRestartPolicyAlways
	return corev1.Container{Name: name, Resources: resources, RestartPolicy: &always}
}

func texts(errs []error) []string {
	var texts []string
	for _, err := range errs {
		texts = append(texts, err.Error())
	}
	return texts
}

// noError returns the text of what was set, where nothing is too much.
func noError(text string, err error) string {
	if err != nil {
		panic(err)
	}
	return text
}
