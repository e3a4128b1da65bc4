// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

// Package summary says in a few words how a Pod is, as kubectl prints it.
package summary

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/borough-io/borough/pkg/corepod"
)

// nodeLost is the reason in the status of a Pod whose node can't be reached.
const nodeLost = "NodeLost"

// Summary is a Pod in a few words. Sidecars count as containers, the other init
// containers do not.
type Summary struct {
	Ready, Total int
	Status       string
	Restarts     Restarts
}

// Restarts is how often containers have started again, and when the last did.
type Restarts struct {
	count int
	last  metav1.Time
}

func (r *Restarts) add(status *corev1.ContainerStatus) {
	r.count += int(status.RestartCount)
	if ended := status.LastTerminationState.Terminated; ended != nil && r.last.Before(&ended.FinishedAt) {
		r.last = ended.FinishedAt
	}
}

// String gives the cell of a table.
func (r *Restarts) String() string {
	if r.count == 0 || r.last.IsZero() {
		return strconv.Itoa(r.count)
	}
	return fmt.Sprintf("%d (%s ago)", r.count, duration.HumanDuration(time.Since(r.last.Time)))
}

// Of summarizes a Pod. Its Status is the one word that says most about the Pod. From the weakest to
// the strongest: its phase, the reason in its status, its scheduling gates, the
// init container that it waits for, its containers, its deletion.
func Of(pod *corev1.Pod) Summary {
	s := Summary{Total: len(pod.Spec.Containers), Status: string(pod.Status.Phase)}
	if pod.Status.Reason != "" {
		s.Status = pod.Status.Reason
	}
	for i := range pod.Status.Conditions {
		if c := &pod.Status.Conditions[i]; c.Type == corev1.PodScheduled && c.Reason == corev1.PodReasonSchedulingGated {
			s.Status = corev1.PodReasonSchedulingGated
		}
	}

	// After initialization the restarts of init containers are omitted, but those
	// of sidecars count.
	sidecarRestarts, initializing := s.addInitContainers(pod)
	if !initializing || corepod.IsConditionTrue(&pod.Status, corev1.PodInitialized) {
		s.Restarts = sidecarRestarts
		s.addContainers(&pod.Status)
	}

	if pod.DeletionTimestamp != nil {
		switch {
		case pod.Status.Reason == nodeLost:
			s.Status = "Unknown"
		case pod.Status.Phase != corev1.PodSucceeded && pod.Status.Phase != corev1.PodFailed:
			s.Status = "Terminating"
		}
	}
	return s
}

// addInitContainers goes through the init containers up to the one that is at
// work, if there is one. It also returns the restarts of the sidecars alone.
func (s *Summary) addInitContainers(pod *corev1.Pod) (sidecarRestarts Restarts, initializing bool) {
	sidecars := map[string]bool{}
	for i := range pod.Spec.InitContainers {
		c := &pod.Spec.InitContainers[i]
		sidecars[c.Name] = corepod.IsSidecar(c)
		if sidecars[c.Name] {
			s.Total++
		}
	}
	for i := range pod.Status.InitContainerStatuses {
		status := &pod.Status.InitContainerStatuses[i]
		sidecar := sidecars[status.Name]
		s.Restarts.add(status)
		if sidecar {
			sidecarRestarts.add(status)
		}
		ended, waiting := status.State.Terminated, status.State.Waiting
		switch {
		case ended != nil && ended.ExitCode == 0:
			continue
		case sidecar && status.Started != nil && *status.Started:
			if status.Ready {
				s.Ready++
			}
			continue
		case ended != nil:
			s.Status = "Init:" + endReason(ended)
		case waiting != nil && waiting.Reason != "" && waiting.Reason != "PodInitializing":
			s.Status = "Init:" + waiting.Reason
		default:
			s.Status = fmt.Sprintf("Init:%d/%d", i, len(pod.Spec.InitContainers))
		}
		return sidecarRestarts, true
	}
	return sidecarRestarts, false
}

// addContainers goes through the containers from the last to the first, so that
// the first one with a reason for the status determines it.
func (s *Summary) addContainers(status *corev1.PodStatus) {
	var running bool
	var failure string
	for i := len(status.ContainerStatuses) - 1; i >= 0; i-- {
		container := &status.ContainerStatuses[i]
		s.Restarts.add(container)
		state := &container.State
		switch {
		case state.Waiting != nil && state.Waiting.Reason != "":
			s.Status = state.Waiting.Reason
		case state.Terminated != nil:
			s.Status = endReason(state.Terminated)
			if state.Terminated.ExitCode != 0 {
				failure = s.Status
			}
		case container.Ready && state.Running != nil:
			running = true
			s.Ready++
		}
	}

	// A container that has completed does not mean that the others have.
	if s.Status == "Completed" {
		switch {
		case running && isReady(status):
			s.Status = "Running"
		case failure != "":
			s.Status = failure
		case running:
			s.Status = "NotReady"
		}
	}
}

// isReady reports whether any condition says that the Pod is ready. Validation lets a
// status have several of one type. For other types, the first counts.
func isReady(status *corev1.PodStatus) bool {
	return slices.ContainsFunc(status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
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
