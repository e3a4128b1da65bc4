// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package quota

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	quotav1 "k8s.io/apiserver/pkg/quota/v1"

	"github.com/borough-io/borough/pkg/apis/tenancy"
)

func TestOf(t *testing.T) {
	large := podOf(
		container("a", "cpu=1,memory=1Gi,ephemeral-storage=1G,hugepages-2Mi=2Mi,example.com/gpu=1,deviceclass.resource.kubernetes.io/gpu=1", "cpu=2,memory=2Gi,ephemeral-storage=2G,hugepages-2Mi=2Mi,example.com/gpu=1"),
		container("b", "cpu=500m", ""),
	)
	small := podOf(container("a", "cpu=1", ""))
	ended := func(phase corev1.PodPhase) *tenancy.Pod {
		return with(small, func(p *tenancy.Pod) { p.Status.Phase = phase })
	}
	for name, test := range map[string]struct {
		resource schema.GroupResource
		object   runtime.Object
		want     string
	}{
		"a LimitRange":    {limitRanges, &tenancy.LimitRange{}, "count/limitranges=1,count/limitranges.tenancy.borough.io=1"},
		"a ResourceQuota": {quotas, &tenancy.ResourceQuota{}, "count/resourcequotas=1,count/resourcequotas.tenancy.borough.io=1,resourcequotas=1"},
		"a kind of another group": {
			schema.GroupResource{Group: "rbac.authorization.k8s.io", Resource: "roles"}, &tenancy.LimitRange{}, "count/roles.rbac.authorization.k8s.io=1",
		},
		"a Pod without resources": {pods, podOf(container("a", "", "")), "count/pods=1,count/pods.tenancy.borough.io=1,pods=1"},
		"a Pod with all resources": {pods, large, "count/pods=1,count/pods.tenancy.borough.io=1,pods=1," +
			"cpu=1500m,requests.cpu=1500m,limits.cpu=2,memory=1Gi,requests.memory=1Gi,limits.memory=2Gi," +
			"ephemeral-storage=1G,requests.ephemeral-storage=1G,limits.ephemeral-storage=2G," +
			"hugepages-2Mi=2Mi,requests.hugepages-2Mi=2Mi,requests.example.com/gpu=1,requests.deviceclass.resource.kubernetes.io/gpu=1"},
		"a Pod with a large init container": {
			pods, with(small, func(p *tenancy.Pod) { p.Spec.InitContainers = []corev1.Container{container("i", "cpu=3", "")} }),
			"count/pods=1,count/pods.tenancy.borough.io=1,pods=1,cpu=3,requests.cpu=3",
		},
		"a Pod with its own resources": {
			pods, with(small, func(p *tenancy.Pod) { p.Spec.Resources = &corev1.ResourceRequirements{Requests: list("cpu=2")} }),
			"count/pods=1,count/pods.tenancy.borough.io=1,pods=1,cpu=2,requests.cpu=2",
		},
		"overhead": {
			pods, with(small, func(p *tenancy.Pod) { p.Spec.Overhead = list("cpu=100m") }),
			"count/pods=1,count/pods.tenancy.borough.io=1,pods=1,cpu=1100m,requests.cpu=1100m",
		},
		"overhead, and the Pod's own resources, of which one was written as a fraction": {
			pods, with(small, func(p *tenancy.Pod) {
				p.Spec.Overhead = list("memory=1Gi")
				p.Spec.Resources = &corev1.ResourceRequirements{Requests: list("memory=6.0Mi"), Limits: list("memory=7.0Mi")}
			}),
			"count/pods=1,count/pods.tenancy.borough.io=1,pods=1,cpu=1,requests.cpu=1,memory=1030Mi,requests.memory=1030Mi,limits.memory=1031Mi",
		},
		"what a node has allocated": {
			pods, with(small, func(p *tenancy.Pod) {
				p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "a", AllocatedResources: list("cpu=2"), Resources: &corev1.ResourceRequirements{Requests: list("cpu=3")}}}
			}),
			"count/pods=1,count/pods.tenancy.borough.io=1,pods=1,cpu=3,requests.cpu=3",
		},
		"negative amounts that a node reports": {
			pods, with(podOf(container("a", "cpu=1", ""), container("b", "example.com/gpu=1", "")), func(p *tenancy.Pod) {
				p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "a", AllocatedResources: list("example.com/gpu=-1,memory=1Gi"), Resources: &corev1.ResourceRequirements{Limits: list("memory=-1")}}}
			}),
			"count/pods=1,count/pods.tenancy.borough.io=1,pods=1,cpu=1,requests.cpu=1,memory=1Gi,requests.memory=1Gi,requests.example.com/gpu=1",
		},
		"a resize that the node has refused": {
			pods, with(podOf(container("a", "cpu=4", "")), func(p *tenancy.Pod) {
				p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodResizePending, Status: corev1.ConditionTrue, Reason: corev1.PodReasonInfeasible}}
				p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "a", AllocatedResources: list("cpu=2"), Resources: &corev1.ResourceRequirements{Requests: list("cpu=2")}}}
			}),
			"count/pods=1,count/pods.tenancy.borough.io=1,pods=1,cpu=4,requests.cpu=4",
		},
		"a Pod that has succeeded": {pods, ended(corev1.PodSucceeded), "count/pods=1,count/pods.tenancy.borough.io=1"},
		"a Pod that has failed":    {pods, ended(corev1.PodFailed), "count/pods=1,count/pods.tenancy.borough.io=1"},
		"a Pod that is running":    {pods, ended(corev1.PodRunning), "count/pods=1,count/pods.tenancy.borough.io=1,pods=1,cpu=1,requests.cpu=1"},
		"a Pod past its grace period": {
			pods, with(small, func(p *tenancy.Pod) {
				p.DeletionTimestamp, p.DeletionGracePeriodSeconds = new(metav1.Unix(1, 0)), new(int64(1))
			}),
			"count/pods=1,count/pods.tenancy.borough.io=1,pods=1,cpu=1,requests.cpu=1",
		},
	} {
		t.Run(name, func(t *testing.T) {
			before := test.object.DeepCopyObject()
			if got := Of(test.resource, test.object).resources; !quotav1.Equals(got, list(test.want)) {
				t.Errorf("got %s, want %s", listText(got), listText(list(test.want)))
			}
			if diff := cmp.Diff(before, test.object); diff != "" {
				t.Errorf("the object has changed (-before +after):\n%s", diff)
			}
		})
	}
}

func TestScopes(t *testing.T) {
	type affinity = corev1.Affinity
	plain := podOf(container("a", "", ""))
	other := corev1.PodAffinityTerm{Namespaces: []string{"other"}}
	withAffinity := func(a affinity) *tenancy.Pod {
		return with(plain, func(p *tenancy.Pod) { p.Spec.Affinity = &a })
	}
	inClass := func(class string) *tenancy.Pod {
		return with(plain, func(p *tenancy.Pod) { p.Spec.PriorityClassName = class })
	}
	exists := func(scope corev1.ResourceQuotaScope) corev1.ScopedResourceSelectorRequirement {
		return corev1.ScopedResourceSelectorRequirement{ScopeName: scope, Operator: corev1.ScopeSelectorOpExists}
	}
	class := func(operator corev1.ScopeSelectorOperator, values ...string) corev1.ScopedResourceSelectorRequirement {
		return corev1.ScopedResourceSelectorRequirement{ScopeName: corev1.ResourceQuotaScopePriorityClass, Operator: operator, Values: values}
	}
	deadline := with(plain, func(p *tenancy.Pod) { p.Spec.ActiveDeadlineSeconds = new(int64(0)) })
	burstable := podOf(container("a", "cpu=1", ""))
	crosses := exists(corev1.ResourceQuotaScopeCrossNamespacePodAffinity)
	for name, test := range map[string]struct {
		requirement corev1.ScopedResourceSelectorRequirement
		in, out     []*tenancy.Pod
	}{
		"Terminating":        {exists(corev1.ResourceQuotaScopeTerminating), []*tenancy.Pod{deadline}, []*tenancy.Pod{plain}},
		"NotTerminating":     {exists(corev1.ResourceQuotaScopeNotTerminating), []*tenancy.Pod{plain}, []*tenancy.Pod{deadline}},
		"BestEffort":         {exists(corev1.ResourceQuotaScopeBestEffort), []*tenancy.Pod{plain}, []*tenancy.Pod{burstable}},
		"NotBestEffort":      {exists(corev1.ResourceQuotaScopeNotBestEffort), []*tenancy.Pod{burstable}, []*tenancy.Pod{plain}},
		"PriorityClass":      {exists(corev1.ResourceQuotaScopePriorityClass), []*tenancy.Pod{inClass("a")}, []*tenancy.Pod{plain}},
		"class In":           {class(corev1.ScopeSelectorOpIn, "a", "b"), []*tenancy.Pod{inClass("b")}, []*tenancy.Pod{inClass("c"), plain}},
		"class NotIn":        {class(corev1.ScopeSelectorOpNotIn, "a", "b"), []*tenancy.Pod{inClass("c"), plain}, []*tenancy.Pod{inClass("b")}},
		"class DoesNotExist": {class(corev1.ScopeSelectorOpDoesNotExist), []*tenancy.Pod{plain}, []*tenancy.Pod{inClass("a")}},
		"a scope of claims":  {exists(corev1.ResourceQuotaScopeVolumeAttributesClass), nil, []*tenancy.Pod{plain}},
		"CrossNamespacePodAffinity": {
			crosses,
			[]*tenancy.Pod{
				withAffinity(affinity{PodAffinity: &corev1.PodAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{other}}}),
				withAffinity(affinity{PodAffinity: &corev1.PodAffinity{PreferredDuringSchedulingIgnoredDuringExecution: []corev1.WeightedPodAffinityTerm{{PodAffinityTerm: other}}}}),
				withAffinity(affinity{PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{other}}}),
				withAffinity(affinity{PodAntiAffinity: &corev1.PodAntiAffinity{PreferredDuringSchedulingIgnoredDuringExecution: []corev1.WeightedPodAffinityTerm{{PodAffinityTerm: corev1.PodAffinityTerm{NamespaceSelector: &metav1.LabelSelector{}}}}}}),
			},
			[]*tenancy.Pod{plain, withAffinity(affinity{PodAffinity: &corev1.PodAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{TopologyKey: "zone"}}}})},
		},
	} {
		t.Run(name, func(t *testing.T) {
			selected := &corev1.ResourceQuotaSpec{ScopeSelector: &corev1.ScopeSelector{MatchExpressions: []corev1.ScopedResourceSelectorRequirement{test.requirement}}}
			specs := []*corev1.ResourceQuotaSpec{selected}
			if test.requirement.Operator == corev1.ScopeSelectorOpExists {
				specs = append(specs, &corev1.ResourceQuotaSpec{Scopes: []corev1.ResourceQuotaScope{test.requirement.ScopeName}})
			}
			for _, spec := range specs {
				for _, pod := range test.in {
					if !Of(pods, pod).matches(spec) {
						t.Errorf("%v is not in the scope", pod.Spec)
					}
				}
				for _, pod := range test.out {
					if Of(pods, pod).matches(spec) {
						t.Errorf("%v is in the scope", pod.Spec)
					}
				}
				if Of(limitRanges, &tenancy.LimitRange{}).matches(spec) {
					t.Error("a LimitRange is in the scope")
				}
			}
		})
	}

	expressions := func(requirements ...corev1.ScopedResourceSelectorRequirement) *corev1.ScopeSelector {
		return &corev1.ScopeSelector{MatchExpressions: requirements}
	}
	inA := class(corev1.ScopeSelectorOpIn, "a")
	for name, test := range map[string]struct {
		spec    corev1.ResourceQuotaSpec
		in, out *tenancy.Pod // out meets only the first condition
	}{
		"two scopes": {
			corev1.ResourceQuotaSpec{Scopes: []corev1.ResourceQuotaScope{corev1.ResourceQuotaScopeNotTerminating, corev1.ResourceQuotaScopeBestEffort}},
			plain, burstable,
		},
		"a scope and a selector": {
			corev1.ResourceQuotaSpec{Scopes: []corev1.ResourceQuotaScope{corev1.ResourceQuotaScopeNotTerminating}, ScopeSelector: expressions(inA)},
			inClass("a"), plain,
		},
		"two expressions": {
			corev1.ResourceQuotaSpec{ScopeSelector: expressions(exists(corev1.ResourceQuotaScopeNotTerminating), inA)},
			inClass("a"), plain,
		},
	} {
		t.Run(name, func(t *testing.T) {
			if !Of(pods, test.in).matches(&test.spec) {
				t.Errorf("%v, which meets both, is not in the scope", test.in.Spec)
			}
			if Of(pods, test.out).matches(&test.spec) {
				t.Errorf("%v, which meets only the first, is in the scope", test.out.Spec)
			}
		})
	}
}
