// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package pod_test

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/warning"

	"github.com/borough-io/borough/pkg/apis/tenancy"
	"github.com/borough-io/borough/pkg/registry/tenancy/pod"
	"github.com/borough-io/borough/pkg/storage/storagetest"
)

var scheme = storagetest.NewConfig(nil).Scheme

func requirements(cpuRequest, cpuLimit string) corev1.ResourceRequirements {
	list := func(cpu string) corev1.ResourceList {
		if cpu == "" {
			return nil
		}
		return corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu), corev1.ResourceMemory: resource.MustParse("1Gi")}
	}
	return corev1.ResourceRequirements{Requests: list(cpuRequest), Limits: list(cpuLimit)}
}

func TestPrepareForCreate(t *testing.T) {
	gated := corev1.PodCondition{
		Type: corev1.PodScheduled, Status: corev1.ConditionFalse,
		Reason: "SchedulingGated", Message: "Scheduling is blocked due to non-empty scheduling gates",
	}
	for _, tc := range []struct {
		name string
		pod  tenancy.Pod
		want corev1.PodStatus
	}{
		{
			"what was sent as status is dropped",
			tenancy.Pod{
				ObjectMeta: metav1.ObjectMeta{Generation: 7},
				Status:     corev1.PodStatus{Phase: corev1.PodRunning, PodIP: "1.2.3.4", QOSClass: corev1.PodQOSGuaranteed},
			},
			corev1.PodStatus{Phase: corev1.PodPending, QOSClass: corev1.PodQOSBestEffort},
		},
		{
			"burstable",
			tenancy.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{{Resources: requirements("1", "2")}}}},
			corev1.PodStatus{Phase: corev1.PodPending, QOSClass: corev1.PodQOSBurstable},
		},
		{
			"guaranteed",
			tenancy.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{{Resources: requirements("1", "1")}}}},
			corev1.PodStatus{Phase: corev1.PodPending, QOSClass: corev1.PodQOSGuaranteed},
		},
		{
			"gated",
			tenancy.Pod{Spec: corev1.PodSpec{SchedulingGates: []corev1.PodSchedulingGate{{Name: "g"}}}},
			corev1.PodStatus{Phase: corev1.PodPending, QOSClass: corev1.PodQOSBestEffort, Conditions: []corev1.PodCondition{gated}},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			pod.NewStrategy(scheme).PrepareForCreate(t.Context(), &tc.pod)
			for i := range tc.pod.Status.Conditions {
				transition := &tc.pod.Status.Conditions[i].LastTransitionTime
				if transition.IsZero() {
					t.Error("a condition has no time")
				}
				*transition = metav1.Time{}
			}
			if diff := cmp.Diff(tc.want, tc.pod.Status); diff != "" {
				t.Errorf("status (-want +got):\n%s", diff)
			}
			if tc.pod.Generation != 1 {
				t.Errorf("generation is %d, want 1", tc.pod.Generation)
			}
		})
	}
}

func TestPrepareForCreateResolvesLabelKeys(t *testing.T) {
	selector := func() *metav1.LabelSelector { return &metav1.LabelSelector{MatchLabels: map[string]string{"app": "x"}} }
	want := func(operator metav1.LabelSelectorOperator) *metav1.LabelSelector {
		s := selector()
		s.MatchExpressions = []metav1.LabelSelectorRequirement{{Key: "rev", Operator: operator, Values: []string{"1"}}}
		return s
	}
	match := corev1.PodAffinityTerm{LabelSelector: selector(), MatchLabelKeys: []string{"rev", "absent"}}
	mismatch := corev1.PodAffinityTerm{LabelSelector: selector(), MismatchLabelKeys: []string{"rev"}}
	none := corev1.PodAffinityTerm{MatchLabelKeys: []string{"rev"}}
	p := &tenancy.Pod{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"rev": "1", "app": "x"}},
		Spec: corev1.PodSpec{
			Affinity: &corev1.Affinity{
				PodAffinity: &corev1.PodAffinity{
					RequiredDuringSchedulingIgnoredDuringExecution:  []corev1.PodAffinityTerm{match, none},
					PreferredDuringSchedulingIgnoredDuringExecution: []corev1.WeightedPodAffinityTerm{{PodAffinityTerm: *mismatch.DeepCopy()}},
				},
				PodAntiAffinity: &corev1.PodAntiAffinity{
					RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{*mismatch.DeepCopy()},
				},
			},
			TopologySpreadConstraints: []corev1.TopologySpreadConstraint{{LabelSelector: selector(), MatchLabelKeys: []string{"rev"}}},
		},
	}
	pod.NewStrategy(scheme).PrepareForCreate(t.Context(), p)

	affinity, anti := p.Spec.Affinity.PodAffinity, p.Spec.Affinity.PodAntiAffinity
	for _, tc := range []struct {
		name      string
		got, want *metav1.LabelSelector
	}{
		{"required", affinity.RequiredDuringSchedulingIgnoredDuringExecution[0].LabelSelector, want(metav1.LabelSelectorOpIn)},
		{"no selector", affinity.RequiredDuringSchedulingIgnoredDuringExecution[1].LabelSelector, nil},
		{"preferred", affinity.PreferredDuringSchedulingIgnoredDuringExecution[0].PodAffinityTerm.LabelSelector, want(metav1.LabelSelectorOpNotIn)},
		{"anti-affinity", anti.RequiredDuringSchedulingIgnoredDuringExecution[0].LabelSelector, want(metav1.LabelSelectorOpNotIn)},
		{"spread", p.Spec.TopologySpreadConstraints[0].LabelSelector, want(metav1.LabelSelectorOpIn)},
	} {
		if diff := cmp.Diff(tc.want, tc.got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tc.name, diff)
		}
	}
}

type recorder []string

func (r *recorder) AddWarning(_, text string) { *r = append(*r, text) }

func TestPrepareForCreateSyncsAppArmor(t *testing.T) {
	const key = "container.apparmor.security.beta.kubernetes.io/c"
	local := &corev1.AppArmorProfile{Type: corev1.AppArmorProfileTypeLocalhost, LocalhostProfile: new("p")}
	unconfined := &corev1.AppArmorProfile{Type: corev1.AppArmorProfileTypeUnconfined}
	for _, tc := range []struct {
		name            string
		annotation      string
		pod, own, want  *corev1.AppArmorProfile
		windows, warned bool
	}{
		{name: "unconfined", annotation: "unconfined", want: unconfined, warned: true},
		{name: "runtime default", annotation: "runtime/default", want: &corev1.AppArmorProfile{Type: corev1.AppArmorProfileTypeRuntimeDefault}, warned: true},
		{name: "localhost", annotation: "localhost/p", want: local, warned: true},
		{name: "localhost without a name", annotation: "localhost/", warned: true},
		{name: "unknown", annotation: "other", warned: true},
		{name: "the container has its own", annotation: "unconfined", own: local, want: local},
		{name: "the pod has the same", annotation: "unconfined", pod: unconfined},
		{name: "windows", annotation: "unconfined", windows: true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			p := &tenancy.Pod{
				ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{key: tc.annotation}},
				Spec: corev1.PodSpec{
					SecurityContext: &corev1.PodSecurityContext{AppArmorProfile: tc.pod},
					Containers:      []corev1.Container{{Name: "c"}, {Name: "d"}},
				},
			}
			if tc.own != nil {
				p.Spec.Containers[0].SecurityContext = &corev1.SecurityContext{AppArmorProfile: tc.own}
			}
			if tc.windows {
				p.Spec.OS = &corev1.PodOS{Name: corev1.Windows}
			}
			var warnings recorder
			pod.NewStrategy(scheme).PrepareForCreate(warning.WithWarningRecorder(t.Context(), &warnings), p)

			var got *corev1.AppArmorProfile
			if sc := p.Spec.Containers[0].SecurityContext; sc != nil {
				got = sc.AppArmorProfile
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("profile (-want +got):\n%s", diff)
			}
			if p.Spec.Containers[1].SecurityContext != nil {
				t.Error("the annotation of one container changed another")
			}
			var want recorder
			if tc.warned {
				want = recorder{`metadata.annotations[` + key + `]: deprecated since v1.30; use the "appArmorProfile" field instead`}
			}
			if diff := cmp.Diff(want, warnings); diff != "" {
				t.Errorf("warnings (-want +got):\n%s", diff)
			}
		})
	}
}

// stored returns a Pod as it may stand in etcd, with something in each part that
// some strategy keeps.
func stored() *tenancy.Pod {
	return &tenancy.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: "p", Namespace: "ns", Generation: 3,
			Labels:          map[string]string{"l": "old"},
			OwnerReferences: []metav1.OwnerReference{{Name: "old"}},
		},
		Spec: corev1.PodSpec{
			Containers:     []corev1.Container{{Name: "a", Image: "a:1"}, {Name: "b", Image: "b:1", Resources: requirements("1", "1")}},
			InitContainers: []corev1.Container{{Name: "i", Image: "i:1"}},
		},
		Status: corev1.PodStatus{Phase: corev1.PodRunning, QOSClass: corev1.PodQOSBurstable},
	}
}

type updater interface {
	PrepareForUpdate(ctx context.Context, obj, old runtime.Object)
}

func TestPrepareForUpdate(t *testing.T) {
	// everything changes all that a client can send.
	everything := func(p *tenancy.Pod) {
		p.Labels = map[string]string{"l": "new"}
		p.OwnerReferences = nil
		for i := range p.Spec.Containers {
			p.Spec.Containers[i].Image = "new"
			p.Spec.Containers[i].Resources = requirements("2", "2")
			p.Spec.Containers[i].ResizePolicy = []corev1.ContainerResizePolicy{{ResourceName: "cpu", RestartPolicy: "RestartContainer"}}
		}
		p.Spec.InitContainers[0].Image = "new"
		p.Spec.InitContainers[0].Resources = requirements("2", "2")
		p.Spec.Resources = new(requirements("4", "4"))
		p.Spec.EphemeralContainers = []corev1.EphemeralContainer{{EphemeralContainerCommon: corev1.EphemeralContainerCommon{Name: "e"}}}
		p.Spec.Priority = new(int32(9))
		p.Status = corev1.PodStatus{Phase: corev1.PodFailed, QOSClass: corev1.PodQOSGuaranteed}
	}
	for _, tc := range []struct {
		name     string
		strategy updater
		change   func(*tenancy.Pod)
		// want makes of the stored Pod what is to come out.
		want func(p, sent *tenancy.Pod)
	}{
		{
			"pod", pod.NewStrategy(scheme), everything,
			func(p, sent *tenancy.Pod) {
				p.Labels, p.OwnerReferences, p.Spec = sent.Labels, sent.OwnerReferences, sent.Spec
				p.Generation = 4
			},
		},
		{
			"pod, metadata only", pod.NewStrategy(scheme),
			func(p *tenancy.Pod) { p.Labels = nil },
			func(p, _ *tenancy.Pod) { p.Labels = nil },
		},
		{
			"status", pod.NewStatusStrategy(scheme), everything,
			func(p, sent *tenancy.Pod) { p.Labels, p.Status = sent.Labels, sent.Status },
		},
		{
			"status, deletion", pod.NewStatusStrategy(scheme),
			func(p *tenancy.Pod) { p.DeletionTimestamp = new(metav1.Now()) },
			func(*tenancy.Pod, *tenancy.Pod) {},
		},
		{
			"resize", pod.NewResizeStrategy(scheme), everything,
			func(p, sent *tenancy.Pod) {
				for i := range p.Spec.Containers {
					p.Spec.Containers[i].Resources = sent.Spec.Containers[i].Resources
					p.Spec.Containers[i].ResizePolicy = sent.Spec.Containers[i].ResizePolicy
				}
				p.Spec.InitContainers[0].Resources = sent.Spec.InitContainers[0].Resources
				p.Spec.Resources = sent.Spec.Resources
				p.Generation = 4
			},
		},
		{
			"resize, other containers", pod.NewResizeStrategy(scheme),
			func(p *tenancy.Pod) { p.Spec.Containers = p.Spec.Containers[:1] },
			func(p, sent *tenancy.Pod) { p.Spec, p.Generation = sent.Spec, 4 },
		},
		{
			"resize, other names", pod.NewResizeStrategy(scheme),
			func(p *tenancy.Pod) { p.Spec.Containers[0].Name = "z" },
			func(p, sent *tenancy.Pod) { p.Spec, p.Generation = sent.Spec, 4 },
		},
		{
			"resize, nothing", pod.NewResizeStrategy(scheme),
			func(p *tenancy.Pod) { p.Spec.Containers[0].Image = "new" },
			func(*tenancy.Pod, *tenancy.Pod) {},
		},
		{
			"ephemeral containers", pod.NewEphemeralContainersStrategy(scheme), everything,
			func(p, sent *tenancy.Pod) {
				p.Spec.EphemeralContainers = sent.Spec.EphemeralContainers
				p.Generation = 4
			},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got := stored()
			tc.change(got)
			sent, want, old := got.DeepCopy(), stored(), stored()
			tc.want(want, sent)
			tc.strategy.PrepareForUpdate(t.Context(), got, old)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("prepared pod (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(stored(), old); diff != "" {
				t.Errorf("the stored pod was changed (-want +got):\n%s", diff)
			}
		})
	}
}

func TestStatusKeepsWhatIsLeftOut(t *testing.T) {
	condition := func(conditionType string, generation int64) corev1.PodCondition {
		return corev1.PodCondition{Type: corev1.PodConditionType(conditionType), ObservedGeneration: generation}
	}
	old, got := stored(), stored()
	old.Status.ObservedGeneration = 3
	old.Status.Conditions = []corev1.PodCondition{condition("A", 1), condition("A", 2), condition("B", 3)}
	got.Status = corev1.PodStatus{
		Phase:      corev1.PodSucceeded,
		Conditions: []corev1.PodCondition{condition("B", 4), condition("A", 0), condition("A", 0), condition("A", 0), condition("C", 0)},
	}
	pod.NewStatusStrategy(scheme).PrepareForUpdate(t.Context(), got, old)
	want := corev1.PodStatus{
		Phase: corev1.PodSucceeded, QOSClass: corev1.PodQOSBurstable, ObservedGeneration: 3,
		Conditions: []corev1.PodCondition{condition("B", 4), condition("A", 1), condition("A", 2), condition("A", 0), condition("C", 0)},
	}
	if diff := cmp.Diff(want, got.Status); diff != "" {
		t.Errorf("status (-want +got):\n%s", diff)
	}
}

func TestCheckGracefulDelete(t *testing.T) {
	for _, tc := range []struct {
		name        string
		node        string
		phase       corev1.PodPhase
		spec, asked *int64
		want        int64
	}{
		{name: "the pod's", node: "n", spec: new(int64(30)), want: 30},
		{name: "the request's", node: "n", spec: new(int64(30)), asked: new(int64(50)), want: 50},
		{name: "none", node: "n", want: 0},
		{name: "at once", node: "n", spec: new(int64(30)), asked: new(int64(0)), want: 0},
		{name: "negative", node: "n", spec: new(int64(30)), asked: new(int64(-1)), want: 1},
		{name: "no node", spec: new(int64(30)), asked: new(int64(50)), want: 0},
		{name: "succeeded", node: "n", phase: corev1.PodSucceeded, spec: new(int64(30)), want: 0},
		{name: "failed", node: "n", phase: corev1.PodFailed, spec: new(int64(30)), want: 0},
		{name: "running", node: "n", phase: corev1.PodRunning, spec: new(int64(30)), want: 30},
	} {
		t.Run(tc.name, func(t *testing.T) {
			p := &tenancy.Pod{
				Spec:   corev1.PodSpec{NodeName: tc.node, TerminationGracePeriodSeconds: tc.spec},
				Status: corev1.PodStatus{Phase: tc.phase},
			}
			options := &metav1.DeleteOptions{GracePeriodSeconds: tc.asked}
			if !pod.NewStrategy(scheme).CheckGracefulDelete(t.Context(), p, options) {
				t.Fatal("the deletion is not graceful")
			}
			if got := *options.GracePeriodSeconds; got != tc.want {
				t.Errorf("got %d seconds, want %d", got, tc.want)
			}
		})
	}
	if pod.NewStrategy(scheme).CheckGracefulDelete(t.Context(), &tenancy.Pod{}, nil) {
		t.Error("a deletion without options is graceful")
	}
}

func TestUpdatesDoNotWarn(t *testing.T) {
	p := &tenancy.Pod{Status: corev1.PodStatus{PodIPs: []corev1.PodIP{{IP: "2001:DB8::1"}}}}
	if got := pod.NewStrategy(scheme).WarningsOnUpdate(t.Context(), p, p); got != nil {
		t.Errorf("an update of the pod warns: %v", got)
	}
	if got := pod.NewStatusStrategy(scheme).WarningsOnUpdate(t.Context(), p, p); len(got) != 1 {
		t.Errorf("an update of the status: got %v, want one warning", got)
	}
}
