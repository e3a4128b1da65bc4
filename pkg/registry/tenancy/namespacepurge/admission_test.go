// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package namespacepurge

import (
	"context"
	"errors"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/admission"
	auditinternal "k8s.io/apiserver/pkg/apis/audit"
	"k8s.io/apiserver/pkg/audit"

	"github.com/borough-io/borough/pkg/apis/tenancy"
	v1 "github.com/borough-io/borough/pkg/apis/tenancy/v1"
)

// counted is an object that counts its copies.
type counted struct {
	tenancy.Pod
	copies *int
}

func (c *counted) DeepCopyObject() runtime.Object {
	*c.copies++
	return &counted{Pod: *c.Pod.DeepCopy(), copies: c.copies}
}

// plugin is a plugin with both phases.
type plugin struct {
	*admission.Handler
	admit, validate func(a admission.Attributes) error
}

func (p plugin) Admit(_ context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	return p.admit(a)
}

func (p plugin) Validate(_ context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	return p.validate(a)
}

// TestAdmitDelete checks that plugins see a copy of the object, one for each phase, only if
// they ask for it, and that their audit annotations are kept.
func TestAdmitDelete(t *testing.T) {
	t.Parallel()
	name := func(a admission.Attributes) string { return a.GetOldObject().(metav1.Object).GetName() }
	ignore := func(admission.Attributes) error { return nil }
	modify := func(a admission.Attributes) error {
		if got := name(a); got != "pod" {
			t.Errorf("got %q", got)
		}
		a.GetOldObject().(metav1.Object).SetName("other")
		if got := name(a); got != "other" {
			t.Errorf("the next plugin gets %q", got)
		}
		return a.AddAnnotation("example.com/a", "b")
	}
	for title, tc := range map[string]struct {
		plugin    admission.Interface
		copies    int
		annotated bool
	}{
		"none asks":           {plugin{admission.NewHandler(admission.Delete), ignore, ignore}, 0, false},
		"a mutating plugin":   {plugin{admission.NewHandler(admission.Delete), modify, ignore}, 1, true},
		"both phases":         {plugin{admission.NewHandler(admission.Delete), modify, modify}, 2, true},
		"of other operations": {plugin{admission.NewHandler(admission.Create), modify, modify}, 0, false},
		"without phases":      {admission.NewHandler(admission.Delete), 0, false},
	} {
		t.Run(title, func(t *testing.T) {
			ctx := audit.WithAuditContext(t.Context())
			if err := audit.AuditContextFrom(ctx).Init(audit.RequestAuditConfig{Level: auditinternal.LevelMetadata}, nil); err != nil {
				t.Fatal(err)
			}
			copies := 0
			obj := &counted{Pod: tenancy.Pod{ObjectMeta: metav1.ObjectMeta{Name: "pod"}}, copies: &copies}
			attributes := admission.NewAttributesRecord(nil, obj, v1.SchemeGroupVersion.WithKind("Pod"), "ns", "pod",
				v1.SchemeGroupVersion.WithResource("pods"), "", admission.Delete, &metav1.DeleteOptions{}, false, nil)
			if err := admitDelete(ctx, newDeleteAdmission(tc.plugin), attributes, nil); err != nil {
				t.Fatal(err)
			}
			if copies != tc.copies || obj.Name != "pod" {
				t.Errorf("%d copies, want %d; the object is %q", copies, tc.copies, obj.Name)
			}
			if _, annotated := audit.AuditContextFrom(ctx).GetEventAnnotation("example.com/a"); annotated != tc.annotated {
				t.Errorf("the audit event has the annotation: %t", annotated)
			}
		})
	}
}

// TestRefuseDelete refuses in each phase.
func TestRefuseDelete(t *testing.T) {
	t.Parallel()
	accept := func(admission.Attributes) error { return nil }
	refuse := func(a admission.Attributes) error { return admission.NewForbidden(a, errors.New("it is kept")) }
	attributes := admission.NewAttributesRecord(nil, &tenancy.Pod{}, v1.SchemeGroupVersion.WithKind("Pod"), "ns", "pod",
		v1.SchemeGroupVersion.WithResource("pods"), "", admission.Delete, &metav1.DeleteOptions{}, false, nil)
	for phase, p := range map[string]plugin{
		"mutating":   {admission.NewHandler(admission.Delete), refuse, accept},
		"validating": {admission.NewHandler(admission.Delete), accept, refuse},
	} {
		if err := admitDelete(t.Context(), newDeleteAdmission(p), attributes, nil); !apierrors.IsForbidden(err) {
			t.Errorf("%s: got %v", phase, err)
		}
	}
}
