// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package bootstrap

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	applyrbacv1 "k8s.io/client-go/applyconfigurations/rbac/v1"
	rbacclient "k8s.io/client-go/kubernetes/typed/rbac/v1"
	"k8s.io/klog/v2"

	"github.com/borough-io/borough/pkg/authorization/rbac"
)

const (
	// aggregationManager is the field manager of aggregated rules in Kubernetes.
	aggregationManager = "clusterrole-aggregation-controller"
	// aggregationRetry is the delay after the first write that failed. It doubles up to
	// maxAggregationRetry, until the roles change.
	aggregationRetry    = time.Second
	maxAggregationRetry = 2 * time.Minute
)

// WriteAggregated writes the rules that ClusterRoles aggregate to their rules, until
// the context ends. Decisions do not depend on that; it shows users what they are. All
// servers of an etcd write the same. It calls attempted after the first attempt.
func WriteAggregated(ctx context.Context, index *rbac.Index, client rbacclient.RbacV1Interface, attempted func()) {
	delay := aggregationRetry
	for {
		changed := index.Changed()
		var retry <-chan time.Time
		for _, role := range index.Outdated() {
			if err := apply(ctx, client, role); err != nil && ctx.Err() == nil {
				klog.FromContext(ctx).Info("Failed to write the aggregated rules of a cluster role, will retry", "name", role.Name, "err", err, "delay", delay)
				retry = time.After(delay)
			}
		}
		attempted()
		select {
		case <-changed:
			delay = aggregationRetry
		case <-retry:
			delay = min(2*delay, maxAggregationRetry)
		case <-ctx.Done():
			return
		}
	}
}

func apply(ctx context.Context, client rbacclient.RbacV1Interface, role rbac.Aggregated) error {
	stored, err := client.ClusterRoles().Get(ctx, role.Name, metav1.GetOptions{})
	if err != nil || stored.AggregationRule == nil {
		return ignoreChanged(err)
	}
	// The UID prevents that a role that was deleted is created again, the version that
	// rules are written to a role that no longer aggregates any.
	config := applyrbacv1.ClusterRole(role.Name).WithUID(stored.UID).WithResourceVersion(stored.ResourceVersion)
	for _, rule := range role.Rules {
		config.WithRules(applyrbacv1.PolicyRule().
			WithVerbs(rule.Verbs...).
			WithAPIGroups(rule.APIGroups...).
			WithResources(rule.Resources...).
			WithResourceNames(rule.ResourceNames...).
			WithNonResourceURLs(rule.NonResourceURLs...))
	}
	applied, err := client.ClusterRoles().Apply(ctx, config, metav1.ApplyOptions{FieldManager: aggregationManager, Force: true})
	if err == nil && len(role.Rules) == 0 && len(applied.Rules) > 0 {
		return removeRules(ctx, client, applied)
	}
	return ignoreChanged(err)
}

// removeRules removes the rules of other field managers, which an apply of no rules
// leaves.
func removeRules(ctx context.Context, client rbacclient.RbacV1Interface, role *rbacv1.ClusterRole) error {
	metadata := map[string]any{"uid": role.UID, "resourceVersion": role.ResourceVersion}
	patch, err := json.Marshal(map[string]any{"metadata": metadata, "rules": nil})
	if err != nil {
		return fmt.Errorf("encode a patch: %w", err)
	}
	_, err = client.ClusterRoles().Patch(ctx, role.Name, types.MergePatchType, patch, metav1.PatchOptions{FieldManager: aggregationManager})
	return ignoreChanged(err)
}

// ignoreChanged ignores the errors of a write to a role that was changed or deleted. The
// index follows.
func ignoreChanged(err error) error {
	if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
		return nil
	}
	return err
}
