// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package bootstrap

import (
	"context"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	applyrbacv1 "k8s.io/client-go/applyconfigurations/rbac/v1"
	rbacclient "k8s.io/client-go/kubernetes/typed/rbac/v1"
	"k8s.io/klog/v2"

	"github.com/borough-io/borough/pkg/authorization/rbac"
)

const (
	// aggregationManager is the field manager of aggregated rules in Kubernetes.
	aggregationManager = "clusterrole-aggregation-controller"
	// aggregationRetry is the delay after a write that failed.
	aggregationRetry = time.Second
)

// WriteAggregated writes the rules that ClusterRoles aggregate to their rules, until
// the context ends. Decisions do not depend on that; it shows users what they are. All
// servers of an etcd write the same. It calls attempted after the first attempt.
func WriteAggregated(ctx context.Context, index *rbac.Index, client rbacclient.RbacV1Interface, attempted func()) {
	for {
		changed := index.Changed()
		var retry <-chan time.Time
		for _, role := range index.Outdated() {
			if err := apply(ctx, client, role); err != nil && ctx.Err() == nil {
				klog.FromContext(ctx).Info("Failed to write the aggregated rules of a cluster role, will retry", "name", role.Name, "reason", err)
				retry = time.After(aggregationRetry)
			}
		}
		attempted()
		select {
		case <-changed:
		case <-retry:
		case <-ctx.Done():
			return
		}
	}
}

func apply(ctx context.Context, client rbacclient.RbacV1Interface, role rbac.Aggregated) error {
	// The UID prevents that a role that was deleted is created again.
	config := applyrbacv1.ClusterRole(role.Name).WithUID(role.UID)
	for _, rule := range role.Rules {
		config.WithRules(applyrbacv1.PolicyRule().
			WithVerbs(rule.Verbs...).
			WithAPIGroups(rule.APIGroups...).
			WithResources(rule.Resources...).
			WithResourceNames(rule.ResourceNames...).
			WithNonResourceURLs(rule.NonResourceURLs...))
	}
	_, err := client.ClusterRoles().Apply(ctx, config, metav1.ApplyOptions{FieldManager: aggregationManager, Force: true})
	if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
		return nil // it was deleted, and the index follows
	}
	return err
}
