// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package pod

import (
	"cmp"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/borough-io/borough/pkg/apis/tenancy"
	"github.com/borough-io/borough/pkg/corepod"
	"github.com/borough-io/borough/pkg/corepod/summary"
	"github.com/borough-io/borough/pkg/registry/table"
)

// NewTableConvertor prints Pods as kubectl prints those of core/v1.
func NewTableConvertor() rest.TableConvertor {
	specDoc, statusDoc := corev1.PodSpec{}.SwaggerDoc(), corev1.PodStatus{}.SwaggerDoc()
	return table.NewConvertor(
		[]metav1.TableColumnDefinition{
			table.NameColumn(),
			{Name: "Ready", Type: "string", Description: "The aggregate readiness state of this pod for accepting traffic."},
			{Name: "Status", Type: "string", Description: "The aggregate status of the containers in this pod."},
			{Name: "Restarts", Type: "string", Description: "The number of times the containers in this pod have been restarted and when the last container in this pod has restarted."},
			table.AgeColumn(),
			{Name: "IP", Type: "string", Priority: 1, Description: statusDoc["podIP"]},
			{Name: "Node", Type: "string", Priority: 1, Description: specDoc["nodeName"]},
			{Name: "Nominated Node", Type: "string", Priority: 1, Description: statusDoc["nominatedNodeName"]},
			{Name: "Readiness Gates", Type: "string", Priority: 1, Description: specDoc["readinessGates"]},
		}, row)
}

func row(pod *tenancy.Pod) ([]any, []metav1.TableRowCondition) {
	s := summary.Of(core(pod))
	cells := []any{
		pod.Name,
		fmt.Sprintf("%d/%d", s.Ready, s.Total),
		s.Status,
		s.Restarts.String(),
		table.Age(pod.CreationTimestamp),
		cmp.Or(primaryIP(pod), table.None),
		cmp.Or(pod.Spec.NodeName, table.None),
		cmp.Or(pod.Status.NominatedNodeName, table.None),
		readinessGates(pod),
	}
	return cells, completed(pod.Status.Phase)
}

// completed marks the rows of Pods that have ended; kubectl can hide them.
func completed(phase corev1.PodPhase) []metav1.TableRowCondition {
	var message string
	switch phase {
	case corev1.PodSucceeded:
		message = "The pod has completed successfully."
	case corev1.PodFailed:
		message = "The pod failed."
	default:
		return nil
	}
	return []metav1.TableRowCondition{{
		Type: metav1.RowCompleted, Status: metav1.ConditionTrue, Reason: string(phase), Message: message,
	}}
}

// readinessGates counts the gates whose condition is true.
func readinessGates(pod *tenancy.Pod) string {
	if len(pod.Spec.ReadinessGates) == 0 {
		return table.None
	}
	open := 0
	for _, gate := range pod.Spec.ReadinessGates {
		if corepod.IsConditionTrue(&pod.Status, gate.ConditionType) {
			open++
		}
	}
	return fmt.Sprintf("%d/%d", open, len(pod.Spec.ReadinessGates))
}
