// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package quota

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/borough-io/borough/pkg/apis/tenancy"
)

var (
	pods        = tenancy.Resource("pods")
	limitRanges = tenancy.Resource("limitranges")
	quotas      = tenancy.Resource("resourcequotas")
)

// list makes a ResourceList of a text such as cpu=1,pods=2.
func list(text string) corev1.ResourceList {
	list := corev1.ResourceList{}
	for pair := range strings.SplitSeq(text, ",") {
		if name, quantity, ok := strings.Cut(pair, "="); ok {
			list[corev1.ResourceName(name)] = resource.MustParse(quantity)
		}
	}
	return list
}

// container returns a container with requests and limits.
func container(name, requests, limits string) corev1.Container {
	return corev1.Container{Name: name, Resources: corev1.ResourceRequirements{Requests: list(requests), Limits: list(limits)}}
}

func podOf(containers ...corev1.Container) *tenancy.Pod {
	return &tenancy.Pod{Spec: corev1.PodSpec{Containers: containers}}
}

// with returns a Pod after a change.
func with(pod *tenancy.Pod, change func(*tenancy.Pod)) *tenancy.Pod {
	pod = pod.DeepCopy()
	change(pod)
	return pod
}

// counted returns a counted quota.
func counted(hard, used string, scopes ...corev1.ResourceQuotaScope) *tenancy.ResourceQuota {
	return &tenancy.ResourceQuota{
		ObjectMeta: metav1.ObjectMeta{Name: "q"},
		Spec:       corev1.ResourceQuotaSpec{Hard: list(hard), Scopes: scopes},
		Status:     corev1.ResourceQuotaStatus{Hard: list(hard), Used: list(used)},
	}
}
