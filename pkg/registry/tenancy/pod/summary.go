// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package pod

import (
	"fmt"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/borough-io/borough/pkg/apis/tenancy"
	"github.com/borough-io/borough/pkg/registry/table"
)

// nodeLost is the reason in the status of a Pod whose node can't be reached.
const nodeLost = "NodeLost"

// summary is a Pod in a few words. Sidecars count as containers, the other init
// containers do not.
type summary struct {
	ready, total int
	status       string
	restarts     restarts
}

// restarts is how often containers have started again, and when the last did.
type restarts struct {
	count int
	last  metav1.Time
}

func (r *restarts) add(status *corev1.ContainerStatus) {
	r.count += int(status.RestartCount)
	if ended := status.LastTerminationState.Terminated; ended != nil && r.last.Before(&ended.FinishedAt) {
		r.last = ended.FinishedAt
	}
}

func (r *restarts) String() string {
	if r.count == 0 || r.last.IsZero() {
		return strconv.Itoa(r.count)
	}
	return fmt.Sprintf("%d (%s ago)", r.count, table.Age(r.last))
}

// summarize finds the one word that says most about the Pod. From the weakest to
// the strongest: its phase, the reason in its status, its scheduling gates, the
// init container that it waits for, its containers, its deletion.
func summarize(pod *tenancy.Pod) summary {
	s := summary{total: len(pod.Spec.Containers), status: string(pod.Status.Phase)}
	if pod.Status.Reason != "" {
		s.status = pod.Status.Reason
	}
	for i := range pod.Status.Conditions {
		if c := &pod.Status.Conditions[i]; c.Type == corev1.PodScheduled && c.Reason == corev1.PodReasonSchedulingGated {
			s.status = corev1.PodReasonSchedulingGated
		}
	}

	// After initialization the restarts of init containers are omitted, but those
	// of sidecars count.
	sidecarRestarts, initializing := s.addInitContainers(pod)
	if !initializing || conditionTrue(&pod.Status, corev1.PodInitialized) {
		s.restarts = sidecarRestarts
		s.addContainers(&pod.Status)
	}

	if pod.DeletionTimestamp != nil {
		switch {
		case pod.Status.Reason == nodeLost:
			s.status = "Unknown"
		case pod.Status.Phase != corev1.PodSucceeded && pod.Status.Phase != corev1.PodFailed:
			s.status = "Terminating"
		}
	}
	return s
}

// addInitContainers goes through the init containers up to the one that is at
// work, if there is one. It also returns the restarts of the sidecars alone.
func (s *summary) addInitContainers(pod *tenancy.Pod) (sidecarRestarts restarts, initializing bool) {
	sidecars := map[string]bool{}
	for i := range pod.Spec.InitContainers {
		c := &pod.Spec.InitContainers[i]
		sidecars[c.Name] = c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways
		if sidecars[c.Name] {
			s.total++
		}
	}
	for i := range pod.Status.InitContainerStatuses {
		status := &pod.Status.InitContainerStatuses[i]
		sidecar := sidecars[status.Name]
		s.restarts.add(status)
		if sidecar {
			sidecarRestarts.add(status)
		}
		ended, waiting := status.State.Terminated, status.State.Waiting
		switch {
		case ended != nil && ended.ExitCode == 0:
			continue
		case sidecar && status.Started != nil && *status.Started:
			if status.Ready {
				s.ready++
			}
			continue
		case ended != nil:
			s.status = "Init:" + endReason(ended)
		case waiting != nil && waiting.Reason != "" && waiting.Reason != "PodInitializing":
			s.status = "Init:" + waiting.Reason
		default:
			s.status = fmt.Sprintf("Init:%d/%d", i, len(pod.Spec.InitContainers))
		}
		return sidecarRestarts, true
	}
	return sidecarRestarts, false
}

// addContainers goes through the containers from the last to the first, so that
// the first one that has something to say is heard.
func (s *summary) addContainers(status *corev1.PodStatus) {
	var running bool
	var failure string
	for i := len(status.ContainerStatuses) - 1; i >= 0; i-- {
		container := &status.ContainerStatuses[i]
		s.restarts.add(container)
		state := &container.State
		switch {
		case state.Waiting != nil && state.Waiting.Reason != "":
			s.status = state.Waiting.Reason
		case state.Terminated != nil:
			s.status = endReason(state.Terminated)
			if state.Terminated.ExitCode != 0 {
				failure = s.status
			}
		case container.Ready && state.Running != nil:
			running = true
			s.ready++
		}
	}

	// One container that has completed does not speak for the others.
	if s.status == "Completed" {
		switch {
		case running && conditionTrue(status, corev1.PodReady):
			s.status = "Running"
		case failure != "":
			s.status = failure
		case running:
			s.status = "NotReady"
		}
	}
}

// endReason says why a container has ended.
func endReason(ended *corev1.ContainerStateTerminated) string {
	switch {
	case ended.Reason != "":
		return ended.Reason
	case ended.Signal != 0:
		return fmt.Sprintf("Signal:%d", ended.Signal)
	default:
		return fmt.Sprintf("ExitCode:%d", ended.ExitCode)
	}
}
