// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package content

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/borough-io/borough/pkg/apis/tenancy"
)

// WithDefaultLimits returns a source that decides as the other one does, but creates the
// Namespace default with the LimitRange limits, unless the other source has decided on
// its content. It is the LimitRange that kube-up creates in a cluster.
func WithDefaultLimits(source Source) Source { return defaultLimits{source} }

type defaultLimits struct{ Source }

// For implements Source.
func (s defaultLimits) For(ctx context.Context, ns *tenancy.Namespace, fresh bool) (Content, error) {
	content, err := s.Source.For(ctx, ns, fresh)
	if err == nil && ns.Name == metav1.NamespaceDefault && content.Origin == "" {
		content.Origin = "the LimitRange of --default-limits"
		content.LimitRange = newDefaultLimits()
	}
	return content, err
}

func newDefaultLimits() *tenancy.LimitRange {
	return &tenancy.LimitRange{
		ObjectMeta: metav1.ObjectMeta{Name: "limits", Namespace: metav1.NamespaceDefault},
		Spec: corev1.LimitRangeSpec{Limits: []corev1.LimitRangeItem{{
			Type:           corev1.LimitTypeContainer,
			DefaultRequest: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("100m")},
		}}},
	}
}
