// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/borough-io/borough/pkg/apis/tenancy/v1"
)

func TestPodDefaults(t *testing.T) {
	t.Parallel()
	ns := newNamespace(t, borough)
	sent := newPod("p", withResources(nil, quantities("cpu=1")))
	sent.Status = corev1.PodStatus{Phase: corev1.PodRunning, QOSClass: corev1.PodQOSBestEffort}
	got := createPod(t, borough, ns, sent)

	want := corev1.PodSpec{
		Containers: []corev1.Container{{
			Name: "c", Image: "example.com/image:1",
			Resources:                corev1.ResourceRequirements{Limits: quantities("cpu=1"), Requests: quantities("cpu=1")},
			TerminationMessagePath:   "/dev/termination-log",
			TerminationMessagePolicy: corev1.TerminationMessageReadFile,
			ImagePullPolicy:          corev1.PullIfNotPresent,
		}},
		RestartPolicy:                 corev1.RestartPolicyAlways,
		DNSPolicy:                     corev1.DNSClusterFirst,
		SchedulerName:                 "default-scheduler",
		TerminationGracePeriodSeconds: new(int64(30)),
		SecurityContext:               &corev1.PodSecurityContext{},
		EnableServiceLinks:            new(true),
	}
	wantEqual(t, "spec", got.Spec, want)
	wantEqual(t, "phase", got.Status.Phase, corev1.PodPending)
	wantEqual(t, "QoS class", got.Status.QOSClass, corev1.PodQOSBurstable)
	wantEqual(t, "generation", got.Generation, int64(1))
}

func TestPodPullPolicyAndQOS(t *testing.T) {
	t.Parallel()
	ns := newNamespace(t, borough)
	for image, want := range map[string]corev1.PullPolicy{
		"a": corev1.PullAlways, "a:latest": corev1.PullAlways, "a:1": corev1.PullIfNotPresent,
	} {
		pod := createPod(t, borough, ns, newPod("", func(pod *v1.Pod) {
			pod.GenerateName = "pull-"
			pod.Spec.Containers[0].Image = image
		}))
		wantEqual(t, "pull policy of "+image, pod.Spec.Containers[0].ImagePullPolicy, want)
	}
	for _, test := range []struct {
		requests, limits string
		want             corev1.PodQOSClass
	}{
		{"", "", corev1.PodQOSBestEffort},
		{"cpu=1", "", corev1.PodQOSBurstable},
		{"", "cpu=1", corev1.PodQOSBurstable},
		{"", "cpu=1 memory=1Gi", corev1.PodQOSGuaranteed},
		{"cpu=500m", "cpu=1 memory=1Gi", corev1.PodQOSBurstable},
	} {
		pod := newPod("", withResources(quantities(test.requests), quantities(test.limits)))
		pod.GenerateName = "qos-"
		wantEqual(t, "QoS class of "+test.requests+"/"+test.limits, createPod(t, borough, ns, pod).Status.QOSClass, test.want)
	}
	// The class is computed after LimitRanger.
	ns = limits(t, borough, newLimitRange("l", item("Container", "default cpu=1 memory=1Gi")))
	wantEqual(t, "QoS class from defaults", createPod(t, borough, ns, newPod("p")).Status.QOSClass, corev1.PodQOSGuaranteed)
}

func TestPodValidation(t *testing.T) {
	t.Parallel()
	ns := newNamespace(t, borough)
	for _, test := range []struct {
		name    string
		modify  func(*v1.Pod)
		message string
	}{
		{"name", func(p *v1.Pod) { p.Name = "A_b" }, `metadata.name: Invalid value: "A_b"`},
		{"no container", func(p *v1.Pod) { p.Spec.Containers = nil }, "spec.containers: Required value"},
		{"same name twice", func(p *v1.Pod) { p.Spec.Containers = append(p.Spec.Containers, p.Spec.Containers[0]) }, `spec.containers[1].name: Duplicate value: "c"`},
		{"container name", func(p *v1.Pod) { p.Spec.Containers[0].Name = "a.b" }, `spec.containers[0].name: Invalid value: "a.b"`},
		{"no image", func(p *v1.Pod) { p.Spec.Containers[0].Image = "" }, "spec.containers[0].image: Required value"},
		{"white space", func(p *v1.Pod) { p.Spec.Containers[0].Image = " a " }, "spec.containers[0].image"},
		{"restart policy", func(p *v1.Pod) { p.Spec.RestartPolicy = "Sometimes" }, `spec.restartPolicy: Unsupported value: "Sometimes"`},
		{"request above limit", withResources(quantities("cpu=2"), quantities("cpu=1")), "must be less than or equal to cpu limit of 1"},
		{"negative", withResources(nil, quantities("cpu=-1")), "must be greater than or equal to 0"},
		{"part of an extended resource", withResources(quantities("a.io/b=1500m"), quantities("a.io/b=1500m")), "must be an integer"},
		{"extended resource unequal", withResources(quantities("a.io/b=1"), quantities("a.io/b=2")), "must be equal to a.io/b limit of 2"},
		{"mount of no volume", func(p *v1.Pod) {
			p.Spec.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: "v", MountPath: "/v"}}
		}, `spec.containers[0].volumeMounts[0].name: Not found: "v"`},
		{"port", func(p *v1.Pod) { p.Spec.Containers[0].Ports = []corev1.ContainerPort{{ContainerPort: 70000}} }, "must be between 1 and 65535, inclusive"},
		{"ephemeral container", func(p *v1.Pod) {
			p.Spec.EphemeralContainers = []corev1.EphemeralContainer{{EphemeralContainerCommon: corev1.EphemeralContainerCommon{Name: "e", Image: "e"}}}
		}, "spec.ephemeralContainers: Forbidden: cannot be set on create"},
		{"node and gate", func(p *v1.Pod) {
			p.Spec.NodeName = "n"
			p.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "a.io/b"}}
		}, "spec.nodeName: Forbidden: cannot be set until all schedulingGates have been cleared"},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, err := borough.Client(t).TenancyV1().Pods(ns).Create(t.Context(), newPod("p", test.modify), metav1.CreateOptions{})
			wantContains(t, wantCode(t, err, 422).Message, test.message)
		})
	}
}

func TestPodUpdate(t *testing.T) {
	t.Parallel()
	ns := newNamespace(t, borough)
	pods := borough.Client(t).TenancyV1().Pods(ns)
	pod := createPod(t, borough, ns, newPod("p"))

	pod.Spec.Containers[0].Image = "example.com/image:2"
	pod.Spec.Tolerations = append(pod.Spec.Tolerations, corev1.Toleration{Key: "a", Operator: corev1.TolerationOpExists})
	pod.Status.Phase = corev1.PodRunning
	pod, err := pods.Update(t.Context(), pod, metav1.UpdateOptions{})
	if err != nil {
		t.Fatalf("update mutable fields: %v", err)
	}
	wantEqual(t, "generation", pod.Generation, int64(2))
	wantEqual(t, "phase", pod.Status.Phase, corev1.PodPending)

	pod.Labels = map[string]string{"a": "b"}
	if pod, err = pods.Update(t.Context(), pod, metav1.UpdateOptions{}); err != nil {
		t.Fatalf("update a label: %v", err)
	}
	wantEqual(t, "generation", pod.Generation, int64(2))

	pod.Spec.Containers[0].Command = []string{"other"}
	_, err = pods.Update(t.Context(), pod, metav1.UpdateOptions{})
	wantContains(t, wantCode(t, err, 422).Message, "spec: Forbidden: pod updates may not change fields other than", "other")
}

func TestPodStatus(t *testing.T) {
	t.Parallel()
	ns := newNamespace(t, borough)
	pods := borough.Client(t).TenancyV1().Pods(ns)
	created := createPod(t, borough, ns, newPod("p"))

	sent := created.DeepCopy()
	sent.Spec.Containers[0].Image = "example.com/other:1"
	sent.Status.Phase = corev1.PodRunning
	got, err := pods.UpdateStatus(t.Context(), sent, metav1.UpdateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	wantEqual(t, "spec", got.Spec, created.Spec)
	wantEqual(t, "phase", got.Status.Phase, corev1.PodRunning)

	got.Status.QOSClass = corev1.PodQOSGuaranteed
	_, err = pods.UpdateStatus(t.Context(), got, metav1.UpdateOptions{})
	wantContains(t, wantCode(t, err, 422).Message, "qosClass", "field is immutable")
}

func TestPodBinding(t *testing.T) {
	t.Parallel()
	ns := newNamespace(t, borough)
	pods := borough.Client(t).TenancyV1().Pods(ns)
	createPod(t, borough, ns, newPod("p"))
	binding := func(name, node string) *v1.Binding {
		return &v1.Binding{ObjectMeta: metav1.ObjectMeta{Name: name}, Target: corev1.ObjectReference{Kind: "Node", Name: node}}
	}
	if _, err := pods.Bind(t.Context(), "p", binding("p", "n1"), metav1.CreateOptions{}); err != nil {
		t.Fatalf("bind: %v", err)
	}
	pod, err := pods.Get(t.Context(), "p", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	wantEqual(t, "node", pod.Spec.NodeName, "n1")
	if len(pod.Status.Conditions) != 1 || pod.Status.Conditions[0].Type != corev1.PodScheduled || pod.Status.Conditions[0].Status != corev1.ConditionTrue {
		t.Errorf("got conditions %+v, want PodScheduled", pod.Status.Conditions)
	}
	_, err = pods.Bind(t.Context(), "p", binding("p", "n2"), metav1.CreateOptions{})
	wantContains(t, wantCode(t, err, 409).Message, "already assigned to node \"n1\"")

	_, err = pods.Bind(t.Context(), "q", binding("q", "n1"), metav1.CreateOptions{})
	wantCode(t, err, 404)

	createPod(t, borough, ns, newPod("gated", func(p *v1.Pod) { p.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "a.io/b"}} }))
	_, err = pods.Bind(t.Context(), "gated", binding("gated", "n1"), metav1.CreateOptions{})
	wantCode(t, err, 409)

	// The Pods of a node, and all others.
	for selector, want := range map[string]int{"spec.nodeName=n1": 1, "spec.nodeName=n2": 0, "spec.nodeName=": 1, "spec.nodeName!=n1": 1} {
		list, err := pods.List(t.Context(), metav1.ListOptions{FieldSelector: selector})
		if err != nil {
			t.Errorf("list %s: %v", selector, err)
		} else if len(list.Items) != want {
			t.Errorf("list %s: got %d Pods, want %d", selector, len(list.Items), want)
		}
	}
}

func TestPodResize(t *testing.T) {
	t.Parallel()
	ns := newNamespace(t, borough)
	pods := borough.Client(t).TenancyV1().Pods(ns)
	pod := createPod(t, borough, ns, newPod("p", withResources(quantities("cpu=1"), quantities("cpu=2"))))

	resize := pod.DeepCopy()
	resize.Spec.Containers[0].Resources.Limits = quantities("cpu=3")
	got, err := pods.UpdateResize(t.Context(), "p", resize, metav1.UpdateOptions{})
	if err != nil {
		t.Fatalf("resize: %v", err)
	}
	wantEqual(t, "limits", got.Spec.Containers[0].Resources.Limits, quantities("cpu=3"))
	wantEqual(t, "generation", got.Generation, int64(2))

	// The same update through the main resource is forbidden.
	got.Spec.Containers[0].Resources.Limits = quantities("cpu=4")
	_, err = pods.Update(t.Context(), got, metav1.UpdateOptions{})
	wantCode(t, err, 422)

	got.Spec.Containers[0].Resources = corev1.ResourceRequirements{Requests: quantities("cpu=4 memory=1Gi"), Limits: quantities("cpu=4 memory=1Gi")}
	_, err = pods.UpdateResize(t.Context(), "p", got, metav1.UpdateOptions{})
	wantContains(t, wantCode(t, err, 422).Message, "Pod QOS Class may not change as a result of resizing")
}

func TestPodEphemeralContainers(t *testing.T) {
	t.Parallel()
	ns := newNamespace(t, borough)
	pods := borough.Client(t).TenancyV1().Pods(ns)
	pod := createPod(t, borough, ns, newPod("p"))
	pod.Spec.EphemeralContainers = []corev1.EphemeralContainer{{EphemeralContainerCommon: corev1.EphemeralContainerCommon{Name: "debug", Image: "debug"}}}
	pod, err := pods.UpdateEphemeralContainers(t.Context(), "p", pod, metav1.UpdateOptions{})
	if err != nil {
		t.Fatalf("add an ephemeral container: %v", err)
	}
	wantEqual(t, "ephemeral containers", len(pod.Spec.EphemeralContainers), 1)
	pod.Spec.EphemeralContainers = nil
	_, err = pods.UpdateEphemeralContainers(t.Context(), "p", pod, metav1.UpdateOptions{})
	wantContains(t, wantCode(t, err, 422).Message, "existing ephemeral containers \"debug\" may not be removed")
}

func TestPodGracefulDeletion(t *testing.T) {
	t.Parallel()
	ns := newNamespace(t, borough)
	pods := borough.Client(t).TenancyV1().Pods(ns)
	assigned := func(p *v1.Pod) { p.Spec.NodeName = "n" }

	createPod(t, borough, ns, newPod("unassigned"))
	if err := pods.Delete(t.Context(), "unassigned", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := pods.Get(t.Context(), "unassigned", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("a Pod without a node: got %v, want not found at once", err)
	}

	createPod(t, borough, ns, newPod("assigned", assigned))
	for _, step := range []struct {
		grace *int64
		want  int64
	}{
		{nil, 30},
		{new(int64(10)), 10},
		{new(int64(20)), 10}, // can only become shorter
	} {
		if err := pods.Delete(t.Context(), "assigned", metav1.DeleteOptions{GracePeriodSeconds: step.grace}); err != nil {
			t.Fatal(err)
		}
		pod, err := pods.Get(t.Context(), "assigned", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if pod.DeletionTimestamp == nil {
			t.Fatal("the Pod has no deletionTimestamp")
		}
		if diff := cmp.Diff(&step.want, pod.DeletionGracePeriodSeconds); diff != "" {
			t.Errorf("the grace period differs (-want +got):\n%s", diff)
		}
	}
	if err := pods.Delete(t.Context(), "assigned", metav1.DeleteOptions{GracePeriodSeconds: new(int64(0))}); err != nil {
		t.Fatal(err)
	}
	if _, err := pods.Get(t.Context(), "assigned", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("after a DELETE with grace period 0: got %v, want not found", err)
	}

	// A Pod that has ended gets no grace period.
	pod := createPod(t, borough, ns, newPod("ended", assigned))
	pod.Status.Phase = corev1.PodSucceeded
	if _, err := pods.UpdateStatus(t.Context(), pod, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := pods.Delete(t.Context(), "ended", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := pods.Get(t.Context(), "ended", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("a Pod that has ended: got %v, want not found at once", err)
	}
}

// TestPodWithoutNamespace checks that a Pod can be created only in a Namespace
// that exists, including one that was just created.
func TestPodWithoutNamespace(t *testing.T) {
	t.Parallel()
	_, err := borough.Client(t).TenancyV1().Pods("not-there").Create(t.Context(), newPod("p"), metav1.CreateOptions{})
	wantContains(t, wantCode(t, err, 404).Message, "namespaces", "\"not-there\" not found")
	for range 20 {
		createPod(t, borough, newNamespace(t, borough), newPod("p"))
	}

	ns := newNamespace(t, alone)
	if err := alone.Client(t).TenancyV1().Namespaces().Delete(t.Context(), ns, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	_, err = alone.Client(t).TenancyV1().Pods(ns).Create(t.Context(), newPod("p"), metav1.CreateOptions{})
	status := wantCode(t, err, 403)
	wantContains(t, status.Message, "unable to create new content in namespace "+ns+" because it is being terminated")
	wantEqual(t, "causes", status.Details.Causes, []metav1.StatusCause{{
		Type: v1.NamespaceTerminatingCause, Message: "namespace " + ns + " is being terminated", Field: "metadata.namespace",
	}})
}
