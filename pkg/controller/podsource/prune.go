// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package podsource

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"

	tenancyerrors "github.com/borough-io/borough/pkg/apis/tenancy/errors"
	v1 "github.com/borough-io/borough/pkg/apis/tenancy/v1"
)

// prune deletes the Namespace. It returns when the grace periods of the Pods are over, because
// the Namespace waits until it has confirmed that they have ended.
func (c *Controller) prune(ctx context.Context, namespace *v1.Namespace) error {
	if _, err := c.deletePods(ctx, namespace.UID); err != nil {
		return err
	}
	err := c.tenancy.TenancyV1().Namespaces().Delete(ctx, c.namespace, metav1.DeleteOptions{
		Preconditions: metav1.NewUIDPreconditions(string(namespace.UID)),
	})
	if err != nil && !tenancyerrors.IsObjectNotFound(err) {
		return fmt.Errorf("delete the Namespace %s: %w", c.namespace, err)
	}
	klog.FromContext(ctx).Info("Deleted the Namespace, waiting for the grace periods of its Pods")
	for {
		deadline, err := c.deletePods(ctx, namespace.UID)
		if err != nil || deadline.IsZero() {
			return err
		}
		time.Sleep(time.Until(deadline)) // a second signal ends the process
	}
}

// deletePods deletes the Pods of the source in the Namespace with a UID, or confirms that they
// have ended when their grace periods are over. It returns when it has to be called again, or
// the zero time. It does not wait for Pods that have finalizers.
func (c *Controller) deletePods(ctx context.Context, uid types.UID) (next time.Time, err error) {
	pods, listErr := c.listPods(ctx)
	// After the list, because another process can have created the Namespace again: its Pods
	// stay.
	namespace, err := c.findNamespace(ctx)
	switch {
	case err != nil:
		return time.Time{}, fmt.Errorf("get the Namespace %s: %w", c.namespace, err)
	case namespace == nil || namespace.UID != uid:
		return time.Time{}, nil
	case listErr != nil:
		return time.Time{}, fmt.Errorf("list the Pods: %w", listErr)
	}
	for name, pod := range pods {
		again, err := c.deletePod(ctx, pod)
		if err != nil {
			return time.Time{}, fmt.Errorf("delete the Pod %s: %w", name, err)
		}
		if next.IsZero() || !again.IsZero() && again.Before(next) {
			next = again
		}
	}
	return next, nil
}

// deletePod deletes a Pod, or confirms that it has ended when its grace period is over, which
// no node does for the Pods of a source. It returns when it has to be called again: now if the
// Pod has got a grace period or has changed, at the end of that period, or the zero time.
func (c *Controller) deletePod(ctx context.Context, pod *unstructured.Unstructured) (again time.Time, err error) {
	// A user can have removed the label of the source from it.
	options := metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: new(pod.GetUID()), ResourceVersion: new(pod.GetResourceVersion())}}
	now := time.Now()
	switch deadline := pod.GetDeletionTimestamp(); {
	case deadline == nil:
		again = now
	case deadline.After(now):
		return deadline.Time, nil
	default:
		options.GracePeriodSeconds = new(int64(0))
	}
	err = c.podClient.Delete(ctx, pod.GetName(), options)
	switch {
	case tenancyerrors.IsObjectNotFound(err):
		return again, nil
	case apierrors.IsConflict(err): // it has changed, or another one has its name
		return now, nil
	}
	return again, err
}
