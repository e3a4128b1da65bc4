// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// etcdMembers makes the etcd of the manifests have so many replicas, with the arguments.
func (c *fakeCluster) etcdMembers(replicas int32, args ...string) {
	set := appsv1.StatefulSet{Spec: appsv1.StatefulSetSpec{Replicas: &replicas, Selector: &metav1.LabelSelector{}}}
	set.Spec.Template.Spec.Containers = []corev1.Container{{Args: args}}
	c.answers[etcdPath] = fakeAnswer{body: set}
}

// deletedPod adds a Pod that is being deleted, on the node node1.
func (c *fakeCluster) deletedPod(nodeDown bool) {
	list := c.answers[podsPath].body.(corev1.PodList)
	pod := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "etcd-0", Namespace: "borough-system", DeletionTimestamp: new(metav1.Now())}}
	pod.Spec.NodeName, pod.Status.PodIP = "node1", "192.0.2.2"
	list.Items = append(list.Items, pod)
	c.answers[podsPath] = fakeAnswer{body: list}
	c.node(nodeDown)
}

// TestPodsForbidden checks that a user who cannot list Pods gets no faults.
func TestPodsForbidden(t *testing.T) {
	c := newFakeCluster(t)
	c.answers[etcdPath] = fakeAnswer{body: appsv1.StatefulSet{Spec: appsv1.StatefulSetSpec{Replicas: new(int32(3)), Selector: &metav1.LabelSelector{}}}}
	c.answers[podsPath] = failure(403, "pods is forbidden")
	for check, f := range c.examine(t) {
		want := OK
		needsPods := check == "server nodes" || check == "server versions"
		if check == "etcd members" || check == "pods" || needsPods {
			want = Skipped
		}
		if f.Status != want || want == Skipped && !needsPods && !strings.Contains(f.Message, "cannot list Pods in borough-system: pods is forbidden") {
			t.Errorf("got %+v, want the status %s", f, want)
		}
	}
}
