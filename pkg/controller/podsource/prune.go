// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package podsource

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
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
// the Namespace waits until it has confirmed that they have ended. It deletes no Pods of a
// Namespace that may not be deleted. What fails for another reason than a refusal is retried.
func (c *Controller) prune(ctx context.Context, namespace *v1.Namespace) error {
	logger := klog.FromContext(ctx)
	last := ""
	backoff := newBackoff()
	for { // a second signal ends the process
		current, next, err := c.pruneOnce(ctx, namespace.UID)
		delay := min(time.Until(next), retryMaxDelay)
		switch {
		case isRefusedDelete(err):
			return err
		case err != nil:
			if reason := message(err); reason != last {
				logger.Info("Cannot delete the Namespace and its Pods, will retry", "err", err)
				last = reason
			}
			if retry := backoff.Step(); next.IsZero() || retry < delay {
				delay = retry
			}
		case next.IsZero():
			return nil
		default:
			backoff = newBackoff()
		}
		c.awaitChange(ctx, current, delay)
	}
}

// pruneOnce deletes the Namespace with a UID, or its Pods if it is being deleted. It returns the
// Namespace, which may be nil, and when it has to be called again, or the zero time.
func (c *Controller) pruneOnce(ctx context.Context, uid types.UID) (namespace *v1.Namespace, next time.Time, err error) {
	namespace, err = c.findNamespace(ctx)
	switch {
	case err != nil:
		return nil, next, fmt.Errorf("get the Namespace %s: %w", c.namespace, err)
	case namespace == nil || namespace.UID != uid:
		return nil, next, nil
	case namespace.DeletionTimestamp != nil:
		next, err = c.deletePods(ctx, uid)
		return namespace, next, err
	}
	err = c.tenancy.TenancyV1().Namespaces().Delete(ctx, c.namespace, metav1.DeleteOptions{
		Preconditions: metav1.NewUIDPreconditions(string(uid)),
	})
	switch {
	case tenancyerrors.IsObjectNotFound(err):
		return nil, next, nil
	case err != nil:
		return namespace, next, fmt.Errorf("delete the Namespace %s: %w", c.namespace, err)
	}
	klog.FromContext(ctx).Info("Deleted the Namespace, waiting for the grace periods of its Pods")
	return namespace, time.Now(), nil
}

// isRefusedDelete reports whether the same delete would be refused again.
func isRefusedDelete(err error) bool {
	return apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err) || apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) ||
		apierrors.HasStatusCause(err, v1.NamespaceProtectedCause)
}

// deletePods deletes the Pods of the source in the Namespace with a UID, or confirms that they
// have ended when their grace periods are over. It returns when it has to be called again, or
// the zero time. It does not wait for Pods that have finalizers, and returns that a delete is
// refused when nothing else remains to be done.
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
	var failed, refused []error
	for _, name := range slices.Sorted(maps.Keys(pods)) {
		again, err := c.deletePod(ctx, pods[name])
		if isRefusedDelete(err) {
			refused = append(refused, fmt.Errorf("delete the Pod %s: %w", name, err))
		} else if err != nil {
			failed = append(failed, fmt.Errorf("delete the Pod %s: %w", name, err))
		}
		if next.IsZero() || !again.IsZero() && again.Before(next) {
			next = again
		}
	}
	if len(failed) == 0 && next.IsZero() {
		failed = refused
	}
	return next, errors.Join(failed...)
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
	case err != nil:
		return time.Time{}, err // the caller decides when it tries again
	}
	return again, nil
}
