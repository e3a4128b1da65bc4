// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package namespacepurge_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/borough-io/borough/pkg/apis/tenancy"
	"github.com/borough-io/borough/pkg/registry/registrytest"
	"github.com/borough-io/borough/pkg/storage/storagetest"
)

// withFinalizers adds so many finalizers to a new Pod.
func withFinalizers(n int) func(*tenancy.Pod) {
	return func(p *tenancy.Pod) {
		for i := range n {
			p.Finalizers = append(p.Finalizers, fmt.Sprintf("example.com/%d", i))
		}
	}
}

// TestResponse follows a Namespace through both kinds of purge, dry runs first:
// what is reported, what admission is asked, and what is left.
func TestResponse(t *testing.T) {
	p := newPurger(t, storagetest.StartEmbedded(t))
	p.CreatePod(t, "free")
	p.CreatePod(t, "held", withFinalizers(6))
	p.CreateLimitRange(t, "limits")
	uid := p.Terminate(t)
	held := []tenancy.RemainingObject{{Name: "held", Finalizers: []string{"example.com/0", "example.com/1", "example.com/2", "example.com/3", "example.com/4"}}}
	for _, step := range []struct {
		name     string
		spec     tenancy.NamespacePurgeSpec
		dryRun   []string
		want     []tenancy.PurgedResource
		admitted []string
		warning  string
		left     []string
	}{
		{
			name: "dry run", spec: ordinary(uid), dryRun: []string{metav1.DryRunAll},
			want:     []tenancy.PurgedResource{{Group: tenancy.GroupName, Resource: "pods", Removed: 1, Held: 1, Objects: held}},
			admitted: []string{"pods NS/free as Pod by admin, grace default, dry run true [All]", "pods NS/held as Pod by admin, grace default, dry run true [All]"},
			left:     []string{"free", "held"},
		},
		{
			name: "ordinary", spec: ordinary(uid),
			want:     []tenancy.PurgedResource{{Group: tenancy.GroupName, Resource: "pods", Removed: 1, Held: 1, Objects: held}},
			admitted: []string{"pods NS/free as Pod by admin, grace default, dry run false []", "pods NS/held as Pod by admin, grace default, dry run false []"},
			left:     []string{"held"},
		},
		{
			name: "forced dry run", spec: forced(uid), dryRun: []string{metav1.DryRunAll},
			want: []tenancy.PurgedResource{
				{Group: tenancy.GroupName, Resource: "pods", Removed: 1, Held: 1, Objects: held},
				{Group: tenancy.GroupName, Resource: "limitranges", Removed: 1},
			},
			admitted: []string{"limitranges NS/limits as LimitRange by admin, grace 0, dry run true [All]", "pods NS/held as Pod by admin, grace 0, dry run true [All]"},
			warning:  "would remove 2 objects, 1 of them held by finalizers or a grace period: what these protect may be left behind",
			left:     []string{"held"},
		},
		{
			name: "forced", spec: forced(uid),
			want: []tenancy.PurgedResource{
				{Group: tenancy.GroupName, Resource: "pods", Removed: 1, Held: 1, Objects: held},
				{Group: tenancy.GroupName, Resource: "limitranges", Removed: 1},
			},
			admitted: []string{"limitranges NS/limits as LimitRange by admin, grace 0, dry run false []", "pods NS/held as Pod by admin, grace 0, dry run false []"},
			warning:  "removed 2 objects, 1 of them held by finalizers or a grace period: what these protect may be left behind",
			left:     []string{},
		},
		{
			name: "forced, with nothing left", spec: forced(uid),
			want: []tenancy.PurgedResource{{Group: tenancy.GroupName, Resource: "pods"}, {Group: tenancy.GroupName, Resource: "limitranges"}},
			left: []string{},
		},
		{
			name: "ordinary, with nothing left", spec: ordinary(uid),
			want: []tenancy.PurgedResource{{Group: tenancy.GroupName, Resource: "pods"}, {Group: tenancy.GroupName, Resource: "limitranges"}},
			left: []string{},
		},
	} {
		p.admitted, p.warnings = nil, nil
		got, err := p.purge(step.spec, step.dryRun...)
		if err != nil {
			t.Fatalf("%s: %v", step.name, err)
		}
		for i := range got {
			for j := range got[i].Objects {
				if o := &got[i].Objects[j]; o.DeletionTimestamp == nil {
					t.Errorf("%s: %s has no deletionTimestamp", step.name, o.Name)
				}
				got[i].Objects[j].DeletionTimestamp, got[i].Objects[j].DeletionGracePeriodSeconds = nil, nil
			}
		}
		if diff := cmp.Diff(step.want, got); diff != "" {
			t.Errorf("%s: status (-want +got):\n%s", step.name, diff)
		}
		var admitted []string
		for _, a := range step.admitted {
			admitted = append(admitted, "DELETE "+strings.Replace(a, "NS", p.Namespace, 1))
		}
		slices.Sort(p.admitted)
		if diff := cmp.Diff(admitted, p.admitted); diff != "" {
			t.Errorf("%s: admission was asked (-want +got):\n%s", step.name, diff)
		}
		if got := strings.Join(p.warnings, "\n"); got != step.warning {
			t.Errorf("%s: warnings %q, want %q", step.name, got, step.warning)
		}
		if diff := cmp.Diff(step.left, p.PodNames(t)); diff != "" {
			t.Errorf("%s: left (-want +got):\n%s", step.name, diff)
		}
	}
}

// TestForceIsARight shows that create alone is not enough to force, in a dry run
// neither, and that an ordinary purge needs no more.
func TestForceIsARight(t *testing.T) {
	p := newPurger(t, storagetest.StartEmbedded(t))
	p.CreatePod(t, "held", registrytest.WithFinalizer)
	uid := p.Terminate(t)
	p.as(ordinaryUser)
	for _, dryRun := range [][]string{nil, {metav1.DryRunAll}} {
		p.asked = nil
		_, err := p.purge(forced(uid), dryRun...)
		want := fmt.Sprintf(`namespacepurges.tenancy.borough.io is forbidden: User "user" cannot force resource "namespacepurges" in API group "tenancy.borough.io" in the namespace %q: no rule`, p.Namespace)
		if !apierrors.IsForbidden(err) || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
		if diff := cmp.Diff([]string{fmt.Sprintf(`user force namespacepurges.tenancy.borough.io/v1 in %s ""`, p.Namespace)}, p.asked); diff != "" {
			t.Errorf("the authorizer was asked (-want +got):\n%s", diff)
		}
	}
	if left := p.PodNames(t); len(left) != 1 || len(p.admitted) > 0 {
		t.Errorf("left %v, admission was asked %q", left, p.admitted)
	}
	p.asked = nil
	if _, err := p.purge(ordinary(uid)); err != nil || len(p.asked) > 0 {
		t.Errorf("an ordinary purge: %v, the authorizer was asked %q", err, p.asked)
	}
	p.as(admin)
	if _, err := p.purge(forced(uid)); err != nil {
		t.Error(err)
	}
}

// TestInvalid sends purges that are rejected before any object is changed.
func TestInvalid(t *testing.T) {
	p := newPurger(t, storagetest.StartEmbedded(t))
	p.CreatePods(t, 3)
	p.CreateLimitRange(t, "limits")
	uid := p.UID(t)
	rejected := func(what string, spec tenancy.NamespacePurgeSpec, is func(error) bool, text string) {
		t.Helper()
		if _, err := p.purge(spec); !is(err) || !strings.Contains(err.Error(), text) {
			t.Errorf("%s: got %v, want %q", what, err, text)
		}
		if left := p.PodNames(t); len(left) != 3 || len(p.admitted) > 0 {
			t.Errorf("%s: left %v, admission was asked %q", what, left, p.admitted)
		}
	}
	both(t, func(t *testing.T, spec func(types.UID) tenancy.NamespacePurgeSpec) {
		rejected("an active Namespace", spec(uid), apierrors.IsConflict, "only a namespace that is being deleted can be purged; delete it first")
		rejected("another UID", spec("other"), apierrors.IsConflict, "is for the namespace with UID other, but the UID of this one is "+string(uid))
	})
	p.Terminate(t)
	both(t, func(t *testing.T, spec func(types.UID) tenancy.NamespacePurgeSpec) {
		rejected("another UID", spec("other"), apierrors.IsConflict, "is for the namespace with UID other, but the UID of this one is "+string(uid))
		rejected("no UID", spec(""), apierrors.IsInvalid, "spec.namespaceUID: Required value: must be the metadata.uid of the namespace to purge")
		bad := &tenancy.NamespacePurge{ObjectMeta: metav1.ObjectMeta{Name: "a/b", Namespace: p.Namespace}, Spec: spec(uid)}
		if _, err := p.purges.Create(p.ctx, bad, rest.ValidateAllObjectFunc, &metav1.CreateOptions{}); !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "metadata.name: Invalid value") {
			t.Errorf("a bad name: got %v", err)
		}
		reject := func(context.Context, runtime.Object) error {
			return apierrors.NewForbidden(tenancy.Resource("namespacepurges"), "x", nil)
		}
		good := &tenancy.NamespacePurge{ObjectMeta: metav1.ObjectMeta{Namespace: p.Namespace}, Spec: spec(uid)}
		if _, err := p.purges.Create(p.ctx, good, reject, &metav1.CreateOptions{}); !apierrors.IsForbidden(err) {
			t.Errorf("admission of the purge: got %v", err)
		}
		p.ctx = withUser(registrytest.RequestIn(t, "nowhere"), admin)
		defer p.as(admin)
		if _, err := p.purge(spec(uid)); !apierrors.IsNotFound(err) || !strings.Contains(err.Error(), `namespaces.tenancy.borough.io "nowhere" not found`) {
			t.Errorf("a Namespace that does not exist: got %v", err)
		}
	})
}

// TestStatusIsBounded purges more held objects than the status names.
func TestStatusIsBounded(t *testing.T) {
	p := newPurger(t, storagetest.StartEmbedded(t))
	for i := range 103 {
		p.CreatePod(t, fmt.Sprintf("p%03d", i), registrytest.WithFinalizer)
	}
	uid := p.Terminate(t)
	for _, spec := range []tenancy.NamespacePurgeSpec{ordinary(uid), forced(uid)} {
		got, err := p.purge(spec)
		if err != nil {
			t.Fatal(err)
		}
		pods := got[0]
		if pods.Held != 103 || len(pods.Objects) != 100 || pods.Objects[0].Name != "p000" || pods.Objects[99].Name != "p099" {
			t.Errorf("force %t: held %d, %d objects", spec.Force, pods.Held, len(pods.Objects))
		}
	}
}
