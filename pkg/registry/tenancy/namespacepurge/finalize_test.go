// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package namespacepurge_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/borough-io/borough/pkg/apis/tenancy"
	"github.com/borough-io/borough/pkg/registry/registrytest"
	"github.com/borough-io/borough/pkg/storage/storagetest"
)

// TestFinalize purges Namespaces with spec.finalize.
func TestFinalize(t *testing.T) {
	member := storagetest.StartEmbedded(t)
	for name, change := range caches {
		for _, tc := range []struct {
			name      string
			prepare   func(t *testing.T, p *purger)
			change    func(ns *tenancy.Namespace) // before it is deleted
			active    bool
			spec      func(types.UID) tenancy.NamespacePurgeSpec
			dryRun    []string
			finalized bool
			exists    bool
			forbidden bool // the error; other cases have none
			conflict  bool
			asked     []string // admission, in order; NS is the Namespace
		}{
			{name: "empty", finalized: true, asked: []string{"UPDATE namespaces/finalize NS"}},
			{
				name:      "with content",
				prepare:   func(t *testing.T, p *purger) { p.CreatePod(t, "a"); p.CreateLimitRange(t, "l") },
				finalized: true,
				asked:     []string{"DELETE pods NS/a", "DELETE limitranges NS/l", "UPDATE namespaces/finalize NS"},
			},
			{
				name:    "content is held",
				prepare: func(t *testing.T, p *purger) { p.CreatePod(t, "a", registrytest.WithFinalizer) },
				exists:  true,
				asked:   []string{"DELETE pods NS/a"},
			},
			{
				name:      "forced",
				prepare:   func(t *testing.T, p *purger) { p.CreatePod(t, "a", registrytest.WithFinalizer) },
				spec:      forced,
				finalized: true,
				asked:     []string{"DELETE pods NS/a", "UPDATE namespaces/finalize NS"},
			},
			{
				name:   "another finalizer in the spec",
				change: func(ns *tenancy.Namespace) { ns.Spec.Finalizers = append(ns.Spec.Finalizers, "example.com/other") },
				exists: true,
			},
			{
				name:   "a finalizer in the metadata",
				change: func(ns *tenancy.Namespace) { ns.Finalizers = []string{"example.com/other"} },
				exists: true,
			},
			{
				name:   "dry run",
				dryRun: []string{metav1.DryRunAll}, finalized: true, exists: true,
				asked: []string{"UPDATE namespaces/finalize NS"},
			},
			{
				name: "admission refuses",
				prepare: func(t *testing.T, p *purger) {
					p.CreatePod(t, "a")
					p.admitFinalize = func() error {
						return apierrors.NewForbidden(tenancy.Resource("namespaces"), p.Namespace, errors.New("no"))
					}
				},
				exists: true,
				asked:  []string{"DELETE pods NS/a", "UPDATE namespaces/finalize NS", "UPDATE namespaces/finalize NS"},
			},
			{
				name:    "without the right",
				prepare: func(t *testing.T, p *purger) { p.CreatePod(t, "a"); p.as(ordinaryUser) },
				exists:  true, forbidden: true,
			},
			{name: "not Terminating", active: true, exists: true, conflict: true},
			{
				name: "another UID", exists: true, conflict: true,
				spec: func(types.UID) tenancy.NamespacePurgeSpec { return ordinary("another") },
			},
		} {
			t.Run(tc.name+" "+name, func(t *testing.T) {
				p := newPurger(t, member, change)
				if tc.prepare != nil {
					tc.prepare(t, p)
				}
				uid := p.UID(t)
				if tc.change != nil {
					p.UpdateNamespace(t, tc.change)
				}
				if !tc.active {
					p.Terminate(t)
				}
				if tc.spec == nil {
					tc.spec = ordinary
				}
				spec := tc.spec(uid)
				spec.Finalize = true
				p.awaitCaches(t)
				p.operations, p.dryRun = nil, tc.dryRun != nil
				obj, err := p.purges.Create(p.ctx, &tenancy.NamespacePurge{ObjectMeta: metav1.ObjectMeta{Namespace: p.Namespace}, Spec: spec}, rest.ValidateAllObjectFunc, &metav1.CreateOptions{DryRun: tc.dryRun})
				if apierrors.IsForbidden(err) != tc.forbidden || apierrors.IsConflict(err) != tc.conflict || err != nil && !tc.forbidden && !tc.conflict {
					t.Fatalf("got error %v", err)
				}
				if err == nil && obj.(*tenancy.NamespacePurge).Status.Finalized != tc.finalized {
					t.Errorf("finalized is %t", !tc.finalized)
				}
				if _, err := p.Namespaces.Get(registrytest.RequestIn(t, ""), p.Namespace, &metav1.GetOptions{}); apierrors.IsNotFound(err) == tc.exists {
					t.Errorf("the Namespace: got %v, want exists %t", err, tc.exists)
				}
				var asked []string
				for _, a := range tc.asked {
					asked = append(asked, p.inNamespace(a))
				}
				if diff := cmp.Diff(asked, slices.Clone(p.operations)); diff != "" {
					t.Errorf("admission was asked (-want +got):\n%s", diff)
				}
			})
		}
	}
}

// TestFinalizeIsARight shows that spec.finalize requires the right to a PUT to
// namespaces/finalize, also in a dry run.
func TestFinalizeIsARight(t *testing.T) {
	p := newPurger(t, storagetest.StartEmbedded(t))
	p.CreatePods(t, 1)
	spec := ordinary(p.Terminate(t))
	spec.Finalize = true
	p.as(ordinaryUser)
	for _, dryRun := range [][]string{nil, {metav1.DryRunAll}} {
		p.asked = nil
		_, err := p.purge(spec, dryRun...)
		want := fmt.Sprintf(`namespaces.tenancy.borough.io %q is forbidden: User "user" cannot update resource "namespaces/finalize" in API group "tenancy.borough.io" in the namespace %q: no rule`, p.Namespace, p.Namespace)
		if !apierrors.IsForbidden(err) || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
		if diff := cmp.Diff([]string{fmt.Sprintf(`user update namespaces/finalize.tenancy.borough.io/v1 in %s %q`, p.Namespace, p.Namespace)}, p.asked); diff != "" {
			t.Errorf("the authorizer was asked (-want +got):\n%s", diff)
		}
	}
	if left := p.PodNames(t); len(left) != 1 || len(p.operations) > 0 {
		t.Errorf("left %v, admission was asked %q", left, p.operations)
	}
}
