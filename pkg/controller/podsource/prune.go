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
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/klog/v2"

	tenancyerrors "github.com/borough-io/borough/pkg/apis/tenancy/errors"
	v1 "github.com/borough-io/borough/pkg/apis/tenancy/v1"
)

// prune deletes the Namespace. It returns when the grace periods of the Pods are over, because
// the Namespace waits until it has confirmed that they have ended. It deletes no Pods of a
// Namespace that may not be deleted.
func (c *Controller) prune(ctx context.Context, namespace *v1.Namespace) error {
	err := c.tenancy.TenancyV1().Namespaces().Delete(ctx, c.namespace, metav1.DeleteOptions{
		Preconditions: metav1.NewUIDPreconditions(string(namespace.UID)),
	})
	if err != nil && !tenancyerrors.IsObjectNotFound(err) {
		return fmt.Errorf("delete the Namespace %s: %w", c.namespace, err)
	}
	logger := klog.FromContext(ctx)
	logger.Info("Deleted the Namespace, waiting for the grace periods of its Pods")
	last := ""
	backoff := newBackoff()
	for { // a second signal ends the process
		var next time.Time
		current, err := c.findNamespace(ctx)
		if err == nil {
			next, err = c.deletePods(ctx, namespace.UID)
		}
		var delay time.Duration
		switch {
		case err != nil:
			current = nil
			if reason := message(err); reason != last {
				logger.Info("Cannot delete the Pods, will retry", "err", err)
				last = reason
			}
			delay = backoff.Step()
		case next.IsZero():
			return nil
		default:
			backoff = newBackoff()
			delay = min(time.Until(next), retryMaxDelay)
		}
		c.awaitChange(ctx, current, delay)
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
	var errs []error
	for name, pod := range pods {
		again, err := c.deletePod(ctx, pod)
		if err != nil {
			errs = append(errs, fmt.Errorf("delete the Pod %s: %w", name, err))
		}
		if next.IsZero() || !again.IsZero() && again.Before(next) {
			next = again
		}
	}
	return next, utilerrors.NewAggregate(errs)
}

// deletePod deletes a Pod, or confirms that it has ended when its grace period is over, which
// no node does for the Pods of a source. It returns when it has to be called again: now if the
// Pod has got a grace period or has changed, at the end of that period, or the zero time.
func (c *Controller) deletePod(ctx context.Context, pod *unstructured.Unstructured) (again time.Time, err error) {
	// A user can have removed the label of the source from it.
	options := metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: new(pod.GetUID()), ResourceVersion: new(pod.GetResourceVersion())}}
	now := time.Now()
	if deletion := pod.GetDeletionTimestamp(); deletion == nil {
		again = now
	} else {
		end := deletion.Add(time.Second) // the API cuts fractions of a second off
		if end.After(now) {
			return end, nil
		}
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
