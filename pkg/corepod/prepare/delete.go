// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package prepare

import corev1 "k8s.io/api/core/v1"

// GracePeriodSeconds returns how many seconds the Pod has to end: those of the
// request, else those of its spec, but none where nothing can be running.
func GracePeriodSeconds(pod *corev1.Pod, requested *int64) int64 {
	var period int64
	switch {
	case requested != nil:
		period = *requested
	case pod.Spec.TerminationGracePeriodSeconds != nil:
		period = *pod.Spec.TerminationGracePeriodSeconds
	}
	switch {
	case pod.Spec.NodeName == "", pod.Status.Phase == corev1.PodSucceeded, pod.Status.Phase == corev1.PodFailed:
		return 0
	case period < 0:
		return 1
	}
	return period
}
