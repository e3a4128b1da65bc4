// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package pod_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/borough-io/borough/pkg/apis/tenancy"
	"github.com/borough-io/borough/pkg/registry/tenancy/pod"
)

// ago is called with half a unit more than is printed, so that a slow machine
// prints the same.
func ago(d time.Duration) metav1.Time { return metav1.NewTime(time.Now().Add(-d)) }

func waiting(reason string) corev1.ContainerState {
	return corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason}}
}

func ended(code, signal int32, reason string) corev1.ContainerState {
	return corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: code, Signal: signal, Reason: reason}}
}

var running = corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}

func containerStatus(name string, state corev1.ContainerState, ready bool, restarts int32) corev1.ContainerStatus {
	return corev1.ContainerStatus{Name: name, State: state, Ready: ready, RestartCount: restarts}
}

func TestTableRow(t *testing.T) {
	sidecar := corev1.Container{Name: "s", RestartPolicy: new(corev1.ContainerRestartPolicyAlways)}
	initialized := corev1.PodCondition{Type: corev1.PodInitialized, Status: corev1.ConditionTrue}
	ready := corev1.PodCondition{Type: corev1.PodReady, Status: corev1.ConditionTrue}
	type want struct{ ready, status, restarts string }

	for _, tc := range []struct {
		name string
		set  func(*tenancy.Pod)
		want want
	}{
		{"the phase", func(*tenancy.Pod) {}, want{"0/2", "Pending", "0"}},
		{"a reason", func(p *tenancy.Pod) { p.Status.Reason = "Evicted" }, want{"0/2", "Evicted", "0"}},
		{"gated", func(p *tenancy.Pod) {
			p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Reason: "SchedulingGated"}}
		}, want{"0/2", "SchedulingGated", "0"}},
		{"running", func(p *tenancy.Pod) {
			p.Status.Phase = corev1.PodRunning
			p.Status.ContainerStatuses = []corev1.ContainerStatus{containerStatus("a", running, true, 1), containerStatus("b", running, false, 2)}
		}, want{"1/2", "Running", "3"}},
		{"the first container that waits", func(p *tenancy.Pod) {
			p.Status.ContainerStatuses = []corev1.ContainerStatus{
				containerStatus("a", waiting("CrashLoopBackOff"), false, 3), containerStatus("b", waiting("ErrImagePull"), false, 0),
			}
		}, want{"0/2", "CrashLoopBackOff", "3"}},
		{"when it restarted last", func(p *tenancy.Pod) {
			a, b := containerStatus("a", waiting("CrashLoopBackOff"), false, 3), containerStatus("b", running, true, 1)
			a.LastTerminationState.Terminated = &corev1.ContainerStateTerminated{FinishedAt: ago(30*time.Minute + 30*time.Second)}
			b.LastTerminationState.Terminated = &corev1.ContainerStateTerminated{FinishedAt: ago(time.Hour)}
			p.Status.ContainerStatuses = []corev1.ContainerStatus{a, b}
		}, want{"1/2", "CrashLoopBackOff", "4 (30m ago)"}},
		{"ended by a signal", func(p *tenancy.Pod) {
			p.Status.ContainerStatuses = []corev1.ContainerStatus{containerStatus("a", ended(137, 9, ""), false, 0)}
		}, want{"0/2", "Signal:9", "0"}},
		{"ended with a code", func(p *tenancy.Pod) {
			p.Status.ContainerStatuses = []corev1.ContainerStatus{containerStatus("a", ended(3, 0, ""), false, 0)}
		}, want{"0/2", "ExitCode:3", "0"}},
		{"one completed, the other runs, the pod is ready", func(p *tenancy.Pod) {
			p.Status.Conditions = []corev1.PodCondition{ready}
			p.Status.ContainerStatuses = []corev1.ContainerStatus{containerStatus("a", ended(0, 0, "Completed"), false, 0), containerStatus("b", running, true, 0)}
		}, want{"1/2", "Running", "0"}},
		{"one completed, the other runs, a second condition says that the pod is ready", func(p *tenancy.Pod) {
			p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionFalse}, ready}
			p.Status.ContainerStatuses = []corev1.ContainerStatus{containerStatus("a", ended(0, 0, "Completed"), false, 0), containerStatus("b", running, true, 0)}
		}, want{"1/2", "Running", "0"}},
		{"one completed, the other runs, the pod is not ready", func(p *tenancy.Pod) {
			p.Status.ContainerStatuses = []corev1.ContainerStatus{containerStatus("a", ended(0, 0, "Completed"), false, 0), containerStatus("b", running, true, 0)}
		}, want{"1/2", "NotReady", "0"}},
		{"one completed, the other failed", func(p *tenancy.Pod) {
			p.Status.ContainerStatuses = []corev1.ContainerStatus{containerStatus("a", ended(0, 0, "Completed"), false, 0), containerStatus("b", ended(1, 0, "Error"), false, 0)}
		}, want{"0/2", "Error", "0"}},
		{"init containers are at work", func(p *tenancy.Pod) {
			p.Spec.InitContainers = []corev1.Container{{Name: "i"}, {Name: "j"}}
			p.Status.InitContainerStatuses = []corev1.ContainerStatus{containerStatus("i", ended(0, 0, "Completed"), true, 1), containerStatus("j", running, false, 2)}
			p.Status.ContainerStatuses = []corev1.ContainerStatus{containerStatus("a", waiting("PodInitializing"), false, 0)}
		}, want{"0/2", "Init:1/2", "3"}},
		{"an init container waits", func(p *tenancy.Pod) {
			p.Spec.InitContainers = []corev1.Container{{Name: "i"}}
			p.Status.InitContainerStatuses = []corev1.ContainerStatus{containerStatus("i", waiting("CrashLoopBackOff"), false, 2)}
		}, want{"0/2", "Init:CrashLoopBackOff", "2"}},
		{"an init container waits for the pod", func(p *tenancy.Pod) {
			p.Spec.InitContainers = []corev1.Container{{Name: "i"}}
			p.Status.InitContainerStatuses = []corev1.ContainerStatus{containerStatus("i", waiting("PodInitializing"), false, 0)}
		}, want{"0/2", "Init:0/1", "0"}},
		{"an init container failed with a reason", func(p *tenancy.Pod) {
			p.Status.InitContainerStatuses = []corev1.ContainerStatus{containerStatus("i", ended(1, 0, "Error"), false, 0)}
		}, want{"0/2", "Init:Error", "0"}},
		{"an init container failed by a signal", func(p *tenancy.Pod) {
			p.Status.InitContainerStatuses = []corev1.ContainerStatus{containerStatus("i", ended(137, 9, ""), false, 0)}
		}, want{"0/2", "Init:Signal:9", "0"}},
		{"an init container failed with a code", func(p *tenancy.Pod) {
			p.Status.InitContainerStatuses = []corev1.ContainerStatus{containerStatus("i", ended(2, 0, ""), false, 0)}
		}, want{"0/2", "Init:ExitCode:2", "0"}},
		{"a sidecar counts, the restarts of the other init containers do not", func(p *tenancy.Pod) {
			p.Status.Phase = corev1.PodRunning
			p.Spec.InitContainers = []corev1.Container{{Name: "i"}, sidecar}
			s := containerStatus("s", running, true, 5)
			s.Started = new(true)
			s.LastTerminationState.Terminated = &corev1.ContainerStateTerminated{FinishedAt: ago(2*time.Hour + time.Minute + 30*time.Second)}
			p.Status.InitContainerStatuses = []corev1.ContainerStatus{containerStatus("i", ended(0, 0, "Completed"), true, 7), s}
			p.Status.ContainerStatuses = []corev1.ContainerStatus{containerStatus("a", running, true, 0)}
		}, want{"2/3", "Running", "5 (121m ago)"}},
		{"a sidecar that has not started", func(p *tenancy.Pod) {
			p.Spec.InitContainers = []corev1.Container{sidecar}
			p.Status.InitContainerStatuses = []corev1.ContainerStatus{containerStatus("s", running, false, 0)}
		}, want{"0/3", "Init:0/1", "0"}},
		{"a sidecar that crashes after initialization", func(p *tenancy.Pod) {
			p.Status.Phase = corev1.PodRunning
			p.Spec.InitContainers = []corev1.Container{sidecar}
			p.Status.Conditions = []corev1.PodCondition{initialized}
			p.Status.InitContainerStatuses = []corev1.ContainerStatus{containerStatus("s", waiting("CrashLoopBackOff"), false, 4)}
			p.Status.ContainerStatuses = []corev1.ContainerStatus{containerStatus("a", running, true, 1)}
		}, want{"1/3", "Init:CrashLoopBackOff", "5"}},
		{"deleted", func(p *tenancy.Pod) {
			p.Status.Phase = corev1.PodRunning
			p.DeletionTimestamp = new(metav1.Now())
		}, want{"0/2", "Terminating", "0"}},
		{"deleted after it ended", func(p *tenancy.Pod) {
			p.Status.Phase = corev1.PodFailed
			p.DeletionTimestamp = new(metav1.Now())
		}, want{"0/2", "Failed", "0"}},
		{"deleted, its node is lost", func(p *tenancy.Pod) {
			p.Status.Reason = "NodeLost"
			p.DeletionTimestamp = new(metav1.Now())
		}, want{"0/2", "Unknown", "0"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			p := &tenancy.Pod{
				ObjectMeta: metav1.ObjectMeta{Name: "p", CreationTimestamp: ago(5*time.Hour + time.Minute + 30*time.Second)},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "a"}, {Name: "b"}}},
				Status:     corev1.PodStatus{Phase: corev1.PodPending},
			}
			tc.set(p)
			table, err := pod.NewTableConvertor().ConvertToTable(t.Context(), p, nil)
			if err != nil {
				t.Fatal(err)
			}
			want := []any{"p", tc.want.ready, tc.want.status, tc.want.restarts, "5h1m", "<none>", "<none>", "<none>", "<none>"}
			if diff := cmp.Diff(want, table.Rows[0].Cells); diff != "" {
				t.Errorf("cells (-want +got):\n%s", diff)
			}
		})
	}
}

func TestTable(t *testing.T) {
	list := &tenancy.PodList{
		ListMeta: metav1.ListMeta{ResourceVersion: "9", Continue: "more", RemainingItemCount: new(int64(5))},
		Items: []tenancy.Pod{
			{
				ObjectMeta: metav1.ObjectMeta{Name: "wide"},
				Spec: corev1.PodSpec{
					NodeName:       "node",
					ReadinessGates: []corev1.PodReadinessGate{{ConditionType: "a"}, {ConditionType: "b"}, {ConditionType: "c"}},
				},
				Status: corev1.PodStatus{
					Phase: corev1.PodRunning, NominatedNodeName: "nominated", PodIPs: []corev1.PodIP{{IP: "1.2.3.4"}, {IP: "::1"}},
					Conditions: []corev1.PodCondition{{Type: "a", Status: corev1.ConditionTrue}, {Type: "b", Status: corev1.ConditionFalse}},
				},
			},
			{ObjectMeta: metav1.ObjectMeta{Name: "done"}, Status: corev1.PodStatus{Phase: corev1.PodSucceeded}},
			{ObjectMeta: metav1.ObjectMeta{Name: "failed"}, Status: corev1.PodStatus{Phase: corev1.PodFailed}},
		},
	}
	table, err := pod.NewTableConvertor().ConvertToTable(t.Context(), list, &metav1.TableOptions{})
	if err != nil {
		t.Fatal(err)
	}

	type column struct {
		name     string
		priority int32
	}
	var columns []column
	for _, c := range table.ColumnDefinitions {
		columns = append(columns, column{c.Name, c.Priority})
		if c.Description == "" {
			t.Errorf("column %s has no description", c.Name)
		}
	}
	wantColumns := []column{
		{"Name", 0}, {"Ready", 0}, {"Status", 0}, {"Restarts", 0}, {"Age", 0},
		{"IP", 1}, {"Node", 1}, {"Nominated Node", 1}, {"Readiness Gates", 1},
	}
	if diff := cmp.Diff(wantColumns, columns, cmp.AllowUnexported(column{})); diff != "" {
		t.Errorf("columns (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(list.ListMeta, table.ListMeta); diff != "" {
		t.Errorf("list metadata (-want +got):\n%s", diff)
	}
	want := []any{"wide", "0/0", "Running", "0", "<unknown>", "1.2.3.4", "node", "nominated", "1/3"}
	if diff := cmp.Diff(want, table.Rows[0].Cells); diff != "" {
		t.Errorf("cells (-want +got):\n%s", diff)
	}
	completed := func(reason, message string) []metav1.TableRowCondition {
		return []metav1.TableRowCondition{{Type: metav1.RowCompleted, Status: metav1.ConditionTrue, Reason: reason, Message: message}}
	}
	for i, want := range [][]metav1.TableRowCondition{
		nil, completed("Succeeded", "The pod has completed successfully."), completed("Failed", "The pod failed."),
	} {
		if diff := cmp.Diff(want, table.Rows[i].Conditions); diff != "" {
			t.Errorf("conditions of row %d (-want +got):\n%s", i, diff)
		}
	}

	table, err = pod.NewTableConvertor().ConvertToTable(t.Context(), list, &metav1.TableOptions{NoHeaders: true})
	if err != nil {
		t.Fatal(err)
	}
	if len(table.ColumnDefinitions) != 0 || len(table.Rows) != 3 {
		t.Errorf("without headers: got %d columns and %d rows", len(table.ColumnDefinitions), len(table.Rows))
	}
}
