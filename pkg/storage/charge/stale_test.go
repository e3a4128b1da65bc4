// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package charge_test

import (
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/borough-io/borough/pkg/apis/tenancy"
	"github.com/borough-io/borough/pkg/storage/precondition"
)

// TestDenialOfStaleWrite creates a Pod that was admitted by LimitRanges that have changed.
// Another server charges the quota before each transaction, until it is full. The write is
// stale then, not denied: by the LimitRanges in force, the Pod could use less.
func TestDenialOfStaleWrite(t *testing.T) {
	f := newPipelineFixture(t)
	hard := corev1.ResourceList{"pods": resource.MustParse("4")}
	quota := &tenancy.ResourceQuota{
		ObjectMeta: metav1.ObjectMeta{Name: "q", Namespace: "a"},
		Spec:       corev1.ResourceQuotaSpec{Hard: hard}, Status: corev1.ResourceQuotaStatus{Hard: hard},
	}
	if err := create(f.ctx, f.servers[1].ResourceQuotas, quota); err != nil {
		t.Fatal(err)
	}
	f.create(0, "known")

	ctx, attempt := precondition.NewAttempt(f.ctx, f.servers[0].Backend, 0)
	attempt.Require(precondition.Objects{Resource: tenancy.Resource("limitranges"), Namespace: "a"}) // none
	limitRange := &tenancy.LimitRange{ObjectMeta: metav1.ObjectMeta{Name: "l", Namespace: "a"}}
	if err := create(f.ctx, f.servers[1].LimitRanges, limitRange); err != nil {
		t.Fatal(err)
	}

	g := f.gate("p")
	created := make(chan error)
	go func() { created <- create(ctx, f.servers[0].Pods, newPod("p")) }()
	for _, other := range []string{"x", "y", "z"} {
		f.receive(g.arrived)
		f.create(1, other)
		held := g
		g = f.gate("p")
		held.open <- carryOut.do
	}
	if err := <-created; !errors.Is(err, precondition.ErrStale) || attempt.StaleAt() == 0 {
		t.Errorf("got %v, stale at %d; want it to be stale", err, attempt.StaleAt())
	}
}
