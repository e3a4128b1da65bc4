// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package namespace

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/borough-io/borough/pkg/apis/tenancy"
)

func ago(d time.Duration) metav1.Time { return metav1.NewTime(time.Now().Add(-d)) }

// TestTable shows the rows that kubectl prints.
func TestTable(t *testing.T) {
	deleted, later := new(ago(time.Minute)), new(ago(-time.Minute))
	object := func(name string, at *metav1.Time, finalizers ...string) tenancy.RemainingObject {
		return tenancy.RemainingObject{Name: name, DeletionTimestamp: at, Finalizers: finalizers}
	}
	graceful := func(name string, at *metav1.Time) tenancy.RemainingObject {
		return tenancy.RemainingObject{Name: name, DeletionTimestamp: at, DeletionGracePeriodSeconds: new(int64(30))}
	}
	left := func(resource string, count int64, objects ...tenancy.RemainingObject) tenancy.RemainingResource {
		name, group, found := strings.Cut(resource, ".")
		if !found {
			group = tenancy.GroupName
		}
		return tenancy.RemainingResource{Group: group, Resource: name, Count: &count, Objects: objects}
	}
	failed := func(r tenancy.RemainingResource, text string) tenancy.RemainingResource {
		r.LastError = text
		return r
	}
	remaining := func(resources ...tenancy.RemainingResource) *tenancy.NamespaceTermination {
		return &tenancy.NamespaceTermination{LastProgressTime: ago(5 * time.Minute), Remaining: resources}
	}
	kube := []tenancy.FinalizerName{tenancy.FinalizerKubernetes}

	for _, tc := range []struct {
		name        string
		spec        []tenancy.FinalizerName
		metadata    []string
		termination *tenancy.NamespaceTermination
		waiting     string
		details     string
	}{
		{"no status yet", kube, nil, nil, "finalizer kubernetes", "<none>"},
		{"finalizers emptied before the content has gone", nil, nil, nil, "content", "<none>"},
		{"a finalizer", kube, nil, remaining(left("pods", 1, object("web", deleted, "a/f")), left("limitranges", 1, object("l", nil))),
			"pods/web (finalizer a/f)", "pods: web (a/f); limitranges: l"},
		{"several", kube, nil, remaining(left("pods", 7, object("a", deleted, "a/f", "a/g"), object("b", deleted, "a/f", "a/h"), object("c", deleted))),
			"7 pods (finalizer a/f, a/g, 1 more)", "pods: a (a/f, a/g), b (a/f, a/h), c (being deleted), 4 more"},
		{"a grace period", kube, nil, remaining(left("pods", 1, graceful("web", later))),
			"pods/web (grace period)", "pods: web (grace period)"},
		{"that is over", kube, nil, remaining(left("pods", 1, graceful("web", deleted))),
			"pods/web (grace period is over)", "pods: web (grace period is over)"},
		{"a delete that is rejected", kube, nil, remaining(failed(left("limitranges", 1, object("l", nil)), "delete l:\n  forbidden")),
			"limitranges/l (cannot be deleted)", "limitranges: l: delete l: forbidden"},
		{"a list that fails", kube, nil, remaining(tenancy.RemainingResource{Group: "a.io", Resource: "widgets", LastError: "down"}),
			"widgets.a.io (cannot be listed)", "widgets.a.io: down"},
		{"resources of the core group", kube, nil, remaining(left("pods.", 2, object("a", deleted, "a/f"))),
			"2 pods.v1. (finalizer a/f)", "pods.v1.: a (a/f), 1 more"},
		{"what has not been asked to go", kube, nil, remaining(left("limitranges", 2, object("l", nil))),
			"2 limitranges", "limitranges: l, 1 more"},
		{"undiscovered groups", kube, nil, &tenancy.NamespaceTermination{LastProgressTime: ago(5 * time.Minute), Undiscovered: []tenancy.UndiscoveredGroup{{LastError: "down"}, {GroupVersion: "a.io/v1", LastError: "down"}}},
			"discovery of API groups, discovery of a.io/v1", "down; a.io/v1: down"},
		{"finalizers of the namespace", []tenancy.FinalizerName{"o.io/o"}, []string{"m.io/m"}, remaining(),
			"finalizer o.io/o, finalizer m.io/m", "<none>"},
		{"its own removal", nil, nil, &tenancy.NamespaceTermination{LastProgressTime: ago(5 * time.Minute), LastError: "no"},
			"its own removal (failed)", "no"},
		{"many things", []tenancy.FinalizerName{"kubernetes", "o.io/o"}, []string{"m.io/m"},
			&tenancy.NamespaceTermination{LastProgressTime: ago(5 * time.Minute), OmittedResources: 3, Remaining: []tenancy.RemainingResource{
				left("a.io", 1, object("x", deleted, "f")), left("b.io", 1, object("x", deleted, "f")),
			}},
			"a.io/x (finalizer f), b.io/x (finalizer f), finalizer o.io/o, 1 more", "a.io: x (f); b.io: x (f); 3 more resources"},
		{"a long error", kube, nil, remaining(failed(left("pods", 0), strings.Repeat("é", 1000))),
			"0 pods (cannot be deleted)", "pods: " + strings.Repeat("é", (maxErrorInCell-3)/2) + "..."},
	} {
		t.Run(tc.name, func(t *testing.T) {
			ns := &tenancy.Namespace{
				ObjectMeta: metav1.ObjectMeta{Name: "ns", CreationTimestamp: ago(time.Hour), DeletionTimestamp: new(ago(7 * time.Minute)), Finalizers: tc.metadata},
				Spec:       tenancy.NamespaceSpec{Finalizers: tc.spec},
				Status:     tenancy.NamespaceStatus{Phase: tenancy.NamespaceTerminating, Termination: tc.termination},
			}
			progress := "5m"
			if tc.termination == nil {
				progress = "7m"
			}
			want := []any{"ns", "Terminating", "60m", tc.waiting, false, progress, tc.details}
			wantRow(t, ns, want)
		})
	}
	// No request can write this, but another writer of etcd can.
	wantRow(t, &tenancy.Namespace{
		ObjectMeta: metav1.ObjectMeta{Name: "ns", CreationTimestamp: ago(time.Hour)},
		Status:     tenancy.NamespaceStatus{Phase: tenancy.NamespaceTerminating},
	}, []any{"ns", "Terminating", "60m", "content", false, "<unknown>", "<none>"})
	wantRow(t, &tenancy.Namespace{
		ObjectMeta: metav1.ObjectMeta{Name: "ns", CreationTimestamp: ago(time.Hour), Finalizers: []string{"a/f"}},
		Spec:       tenancy.NamespaceSpec{Finalizers: kube, DeletionProtection: true},
		Status:     tenancy.NamespaceStatus{Phase: tenancy.NamespaceActive},
	}, []any{"ns", "Active", "60m", "<none>", true, "<none>", "<none>"})
}

func wantRow(t *testing.T, ns *tenancy.Namespace, want []any) {
	t.Helper()
	table, err := NewTableConvertor().ConvertToTable(t.Context(), ns, nil)
	if err != nil {
		t.Fatal(err)
	}
	var columns []string
	for _, c := range table.ColumnDefinitions {
		columns = append(columns, fmt.Sprint(c.Name, " ", c.Priority))
	}
	if diff := cmp.Diff([]string{"Name 0", "Status 0", "Age 0", "Waiting For 0", "Protected 1", "Last Progress 1", "Details 1"}, columns); diff != "" {
		t.Errorf("columns (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(want, table.Rows[0].Cells); diff != "" {
		t.Errorf("cells (-want +got):\n%s", diff)
	}
}
