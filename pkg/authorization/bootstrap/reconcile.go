// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package bootstrap

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/apimachinery/pkg/util/wait"
	rbacclient "k8s.io/client-go/kubernetes/typed/rbac/v1"
	"k8s.io/client-go/util/retry"
	"k8s.io/component-helpers/auth/rbac/reconciliation"
	"k8s.io/klog/v2"
)

// Reconcile creates the ClusterRoles and ClusterRoleBindings, and adds what those that
// exist lack, unless their annotation rbac.authorization.kubernetes.io/autoupdate is
// false. It retries until it succeeds or the context ends. It calls attempted after
// the first attempt: an object that a user has left in the way must not keep a server
// from becoming ready.
func Reconcile(ctx context.Context, client rbacclient.RbacV1Interface, attempted func()) {
	defer attempted()
	delay := wait.Backoff{Duration: 50 * time.Millisecond, Factor: 2, Jitter: 0.1, Steps: 8, Cap: 5 * time.Second}.DelayFunc()
	_ = delay.Until(ctx, true, false, func(ctx context.Context) (bool, error) {
		err := reconcile(ctx, client)
		if err != nil {
			klog.FromContext(ctx).Info("Failed to reconcile the default RBAC objects, will retry", "err", err)
		}
		attempted()
		return err == nil, nil
	})
}

// reconcile makes one attempt for each object. An error does not keep it from the others.
func reconcile(ctx context.Context, client rbacclient.RbacV1Interface) error {
	var errs []error
	for _, role := range ClusterRoles() {
		options := reconciliation.ReconcileRoleOptions{
			Role:    reconciliation.ClusterRoleRuleOwner{ClusterRole: &role},
			Client:  reconciliation.ClusterRoleModifier{Client: client.ClusterRoles()},
			Confirm: true,
		}
		err := retryRaces(func() error {
			result, err := options.Run()
			if err == nil {
				logReconciled(ctx, "cluster role", role.Name, result.Operation, result.Protected, "rules", result.MissingRules)
			}
			return err
		})
		if err != nil {
			errs = append(errs, fmt.Errorf("reconcile the cluster role %s: %w", role.Name, err))
		}
	}
	for _, binding := range clusterRoleBindings() {
		options := reconciliation.ReconcileRoleBindingOptions{
			RoleBinding: reconciliation.ClusterRoleBindingAdapter{ClusterRoleBinding: &binding},
			Client:      reconciliation.ClusterRoleBindingClientAdapter{Client: client.ClusterRoleBindings()},
			Confirm:     true,
		}
		err := retryRaces(func() error {
			result, err := options.Run()
			if err == nil {
				logReconciled(ctx, "cluster role binding", binding.Name, result.Operation, result.Protected, "subjects", result.MissingSubjects)
			}
			return err
		})
		if err != nil {
			errs = append(errs, fmt.Errorf("reconcile the cluster role binding %s: %w", binding.Name, err))
		}
	}
	return utilerrors.NewAggregate(errs)
}

func logReconciled(ctx context.Context, kind, name string, operation reconciliation.ReconcileOperation, protected bool, lacks string, missing any) {
	switch logger := klog.FromContext(ctx); {
	case operation == reconciliation.ReconcileNone:
	case protected:
		logger.Info("Did not reconcile a protected "+kind, "name", name, "operation", operation, lacks, missing)
	default:
		logger.V(2).Info("Reconciled a "+kind, "name", name, "operation", operation, lacks, missing)
	}
}

// retryRaces retries while another server reconciles the same objects.
func retryRaces(f func() error) error {
	return retry.OnError(retry.DefaultBackoff, func(err error) bool {
		return apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err)
	}, f)
}
