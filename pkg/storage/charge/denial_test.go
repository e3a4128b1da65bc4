// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package charge_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
)

// TestDenialDoesNotWait denies a write while a transaction is in flight, for which it does not
// wait, so that it does not hold up those behind it.
func TestDenialDoesNotWait(t *testing.T) {
	f := newPipelineFixture(t)
	f.createQuota("q")
	for _, name := range []string{"one", "two", "three"} { // then more may be in flight
		f.create(0, name)
	}
	held := f.gate("held")
	created := make(chan error, 1)
	go func() { created <- create(f.ctx, f.servers[0].Pods, newPod("held")) }()
	f.receive(held.arrived)
	large := newPod("large")
	large.Spec.Containers[0].Resources.Requests = corev1.ResourceList{"cpu": resource.MustParse("2000")}
	denied := make(chan struct{})
	go func() {
		defer close(denied)
		if err := create(f.ctx, f.servers[0].Pods, large); !apierrors.IsForbidden(err) {
			t.Errorf("got %v, want Forbidden", err)
		}
	}()
	f.receive(denied)
	held.open <- carryOut.do
	if err := <-created; err != nil {
		t.Error(err)
	}
	f.wantUsed(4)
}
