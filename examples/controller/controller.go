// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

// Package controller is an example of a controller that is tested with boroughtest. It backs
// Pods up before they are removed.
package controller

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
)

// Finalizer keeps a Pod until it is backed up. Users set it when they create the Pod.
const Finalizer = "example.com/backup"

// Reconciler backs up the Pods with the finalizer that are deleted, and then removes the
// finalizer.
type Reconciler struct {
	Client client.Client
	// Backup is called for each Pod until it returns nil.
	Backup func(ctx context.Context, pod *corev1.Pod) error
}

// SetupWithManager adds the reconciler to the manager.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(mgr).For(&corev1.Pod{}).Complete(r)
}

// Reconcile implements reconcile.Reconciler.
func (r *Reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	pod := &corev1.Pod{}
	if err := r.Client.Get(ctx, request.NamespacedName, pod); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if pod.DeletionTimestamp.IsZero() || !controllerutil.ContainsFinalizer(pod, Finalizer) {
		return ctrl.Result{}, nil
	}
	if err := r.Backup(ctx, pod); err != nil {
		return ctrl.Result{}, fmt.Errorf("back up the Pod: %w", err)
	}
	// The lock keeps a finalizer that another controller has added since.
	before := client.MergeFromWithOptions(pod.DeepCopy(), client.MergeFromWithOptimisticLock{})
	controllerutil.RemoveFinalizer(pod, Finalizer)
	return ctrl.Result{}, client.IgnoreNotFound(r.Client.Patch(ctx, pod, before))
}
