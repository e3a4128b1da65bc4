// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package podsource

import (
	"fmt"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/borough-io/borough/pkg/apis/tenancy/v1"
)

// BenchmarkEdit measures the time from the edit of a file until a watch has the Pod.
func BenchmarkEdit(b *testing.B) {
	f := newFixture(b)
	f.write("a.yaml", newPod("a"))
	f.start(f.config())
	f.expect("a-node-1=image:1")
	watcher, err := f.admin.TenancyV1().Pods(f.namespace).Watch(b.Context(), metav1.ListOptions{})
	f.must(err)
	defer watcher.Stop()
	<-watcher.ResultChan()
	i := 1
	for b.Loop() {
		i++
		text := fmt.Sprint("image:", i)
		f.write("a.yaml", newPod("a", image(text)))
		for event := range watcher.ResultChan() {
			if event.Object.(*v1.Pod).Spec.Containers[0].Image == text {
				break
			}
		}
	}
}
