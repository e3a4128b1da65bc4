// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package validation_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/borough-io/borough/pkg/apis/tenancy"
	"github.com/borough-io/borough/pkg/apis/tenancy/validation"
)

func TestNamespace(t *testing.T) {
	const (
		unqualified = "name is neither a standard finalizer name nor is it fully qualified"
		namePart    = "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
		labelKey    = "a valid label key must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]') with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
	)
	base := func(change func(*tenancy.Namespace)) *tenancy.Namespace {
		ns := &tenancy.Namespace{
			ObjectMeta: metav1.ObjectMeta{Name: "foo", ResourceVersion: "1"},
			Spec:       tenancy.NamespaceSpec{Finalizers: []tenancy.FinalizerName{"kubernetes", "openshift.com/origin"}},
			Status:     tenancy.NamespaceStatus{Phase: tenancy.NamespaceActive},
		}
		change(ns)
		return ns
	}
	finalizers := func(names ...tenancy.FinalizerName) func(*tenancy.Namespace) {
		return func(ns *tenancy.Namespace) { ns.Spec.Finalizers = names }
	}
	none := func(*tenancy.Namespace) {}

	for name, tc := range map[string]struct {
		change                           func(*tenancy.Namespace)
		create, update, status, finalize []string
	}{
		"valid": {change: none},
		"standard finalizers": {
			change: finalizers("kubernetes", "orphan", "foregroundDeletion"),
		},
		"name with dots": {
			change:   func(ns *tenancy.Namespace) { ns.Name = "a.b" },
			create:   []string{`metadata.name: Invalid value: "a.b": must not contain dots`},
			update:   []string{`metadata.name: Invalid value: "a.b": field is immutable`},
			status:   []string{`metadata.name: Invalid value: "a.b": field is immutable`},
			finalize: []string{`metadata.name: Invalid value: "a.b": field is immutable`},
		},
		"namespace": {
			change:   func(ns *tenancy.Namespace) { ns.Namespace = "a" },
			create:   []string{`metadata.namespace: Forbidden: not allowed on this type`},
			update:   []string{`metadata.namespace: Invalid value: "a": field is immutable`},
			status:   []string{`metadata.namespace: Invalid value: "a": field is immutable`},
			finalize: []string{`metadata.namespace: Invalid value: "a": field is immutable`},
		},
		"unqualified finalizer": {
			change:   finalizers("kubernetes", "mine"),
			create:   []string{`spec.finalizers: Invalid value: "mine": ` + unqualified},
			finalize: []string{`spec.finalizers[1]: Invalid value: "mine": ` + unqualified},
		},
		"finalizer with two slashes": {
			change:   finalizers("example.com/a/b"),
			create:   []string{`spec.finalizers: Invalid value: "example.com/a/b": ` + labelKey},
			finalize: []string{`spec.finalizers[0]: Invalid value: "example.com/a/b": ` + labelKey},
		},
		"finalizer with an invalid name": {
			change:   finalizers("example.com/-x"),
			create:   []string{`spec.finalizers: Invalid value: "example.com/-x": ` + namePart},
			finalize: []string{`spec.finalizers[0]: Invalid value: "example.com/-x": ` + namePart},
		},
		"unqualified metadata finalizer": {
			change:   func(ns *tenancy.Namespace) { ns.Finalizers = []string{"mine"} },
			create:   []string{`metadata.finalizers[0]: Invalid value: "mine": ` + unqualified},
			update:   []string{`metadata.finalizers[0]: Invalid value: "mine": ` + unqualified},
			status:   []string{`metadata.finalizers[0]: Invalid value: "mine": ` + unqualified},
			finalize: []string{`metadata.finalizers[0]: Invalid value: "mine": ` + unqualified},
		},
		"terminating without deletion": {
			change: func(ns *tenancy.Namespace) { ns.Status.Phase = tenancy.NamespaceTerminating },
			status: []string{"status.Phase: Invalid value: \"Terminating\": may only be 'Active' if `deletionTimestamp` is empty"},
		},
		"termination without deletion": {
			change: func(ns *tenancy.Namespace) { ns.Status.Termination = &tenancy.NamespaceTermination{} },
			status: []string{"status.termination: Forbidden: may only be set if `deletionTimestamp` is not empty"},
		},
		"no phase": {
			change: func(ns *tenancy.Namespace) { ns.Status.Phase = "" },
			status: []string{"status.Phase: Invalid value: \"\": may only be 'Active' if `deletionTimestamp` is empty"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			changed, old := base(tc.change), base(none)
			for _, op := range []struct {
				name      string
				got, want []string
			}{
				{"create", messages(validation.ValidateNamespace(changed)), tc.create},
				{"update", messages(validation.ValidateNamespaceUpdate(changed, old)), tc.update},
				{"status", messages(validation.ValidateNamespaceStatusUpdate(changed, old)), tc.status},
				{"finalize", messages(validation.ValidateNamespaceFinalizeUpdate(changed, old)), tc.finalize},
			} {
				if diff := cmp.Diff(op.want, op.got, cmpopts.EquateEmpty()); diff != "" {
					t.Errorf("%s (-want +got):\n%s", op.name, diff)
				}
			}
		})
	}
}

func TestStatusOfADeletedNamespace(t *testing.T) {
	ns := &tenancy.Namespace{
		ObjectMeta: metav1.ObjectMeta{Name: "foo", ResourceVersion: "1", DeletionTimestamp: new(metav1.Now())},
		Status:     tenancy.NamespaceStatus{Phase: tenancy.NamespaceTerminating},
	}
	if errs := validation.ValidateNamespaceStatusUpdate(ns, ns); len(errs) > 0 {
		t.Error(errs)
	}
	revived := ns.DeepCopy()
	revived.Status.Phase = tenancy.NamespaceActive
	want := []string{"status.Phase: Invalid value: \"Active\": may only be 'Terminating' if `deletionTimestamp` is not empty"}
	if diff := cmp.Diff(want, messages(validation.ValidateNamespaceStatusUpdate(revived, ns))); diff != "" {
		t.Error(diff)
	}
}

func TestProtectionOfADeletedNamespace(t *testing.T) {
	ns := &tenancy.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "foo", ResourceVersion: "1"}}
	protected := ns.DeepCopy()
	protected.Spec.DeletionProtection = true
	if errs := validation.ValidateNamespaceUpdate(protected, ns); len(errs) > 0 {
		t.Error(errs)
	}
	ns.DeletionTimestamp = new(metav1.Now())
	protected.DeletionTimestamp = ns.DeletionTimestamp
	want := []string{"spec.deletionProtection: Forbidden: may not be set on a namespace that is being deleted: its deletion cannot be canceled"}
	if diff := cmp.Diff(want, messages(validation.ValidateNamespaceUpdate(protected, ns))); diff != "" {
		t.Error(diff)
	}
}
