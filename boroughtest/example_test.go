// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package boroughtest_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/borough-io/borough/boroughtest"
)

var t *testing.T // the parameter of the test

// When the test ends, the Namespace with the Pod is deleted, and the server stops.
func Example() {
	s := boroughtest.Start(t)
	ns := s.Namespace(t)

	client, err := kubernetes.NewForConfig(s.Config())
	if err != nil {
		t.Fatal(err)
	}
	_, err = client.CoreV1().Pods(ns).Create(t.Context(), &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "web"},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "nginx", Image: "nginx:1.29"}}},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
}
