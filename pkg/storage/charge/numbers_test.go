// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package charge_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/borough-io/borough/pkg/apis/tenancy"
	"github.com/borough-io/borough/pkg/storage/charge"
)

// TestSizeOfQuotas creates and updates large quotas up to the maximum of their size, with which
// Pods can still be created and deleted.
func TestSizeOfQuotas(t *testing.T) {
	f := newPipelineFixture(t)
	const share = 10
	resize := func(name string, bytes int) error {
		return update(f.ctx, f.servers[1].ResourceQuotas, name, func(quota *tenancy.ResourceQuota) {
			quota.Annotations = map[string]string{"size": strings.Repeat("x", bytes)}
		})
	}
	const large = charge.MaxQuotasSize/share - 1<<10 // without the rest of the quota
	for i := range share {
		name := fmt.Sprint("q", i)
		f.createQuota(name)
		if err := resize(name, large); err != nil {
			t.Fatal(err)
		}
	}
	wantForbidden := func(err error) {
		t.Helper()
		if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "bytes in etcd, more than the maximum of 1048576") {
			t.Errorf("got %v, want Forbidden", err)
		}
	}
	wantForbidden(create(f.ctx, f.servers[0].ResourceQuotas, &tenancy.ResourceQuota{
		ObjectMeta: metav1.ObjectMeta{Name: "another", Namespace: "a", Annotations: map[string]string{"size": strings.Repeat("x", large)}},
	}))
	wantForbidden(resize("q0", 2*large))
	for i, server := range f.servers {
		f.create(i, fmt.Sprint("p", i))
		if _, _, err := server.Pods.Delete(f.ctx, fmt.Sprint("p", i), rest.ValidateAllObjectFunc, metav1.NewDeleteOptions(0)); err != nil {
			t.Error(err)
		}
	}
	for _, step := range []struct {
		name  string
		bytes int
	}{{"q0", 1}, {"q1", 2 * large}, {"q1", large}} {
		if err := resize(step.name, step.bytes); err != nil {
			t.Errorf("resize %s to %d bytes: %v", step.name, step.bytes, err)
		}
	}
	f.createQuota("another")
}

// TestManyWritesOfLargeQuotas creates Pods at the same time in a Namespace with so large quotas
// that a transaction cannot both compare their values and write them.
func TestManyWritesOfLargeQuotas(t *testing.T) {
	f := newPipelineFixture(t)
	for i := range 9 {
		f.createQuota(fmt.Sprint("q", i))
		err := update(f.ctx, f.servers[1].ResourceQuotas, fmt.Sprint("q", i), func(quota *tenancy.ResourceQuota) {
			quota.Annotations = map[string]string{"size": strings.Repeat("x", 100<<10)}
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	f.createQuota("q")
	var creates sync.WaitGroup
	for i := range 30 {
		creates.Go(func() {
			if err := create(f.ctx, f.servers[0].Pods, newPod(fmt.Sprint("p", i))); err != nil {
				t.Error(err)
			}
		})
	}
	creates.Wait()
	f.wantUsed(30)
}

// TestDeniedUpdate updates a Pod so that it would use more than the quota allows.
func TestDeniedUpdate(t *testing.T) {
	f := newPipelineFixture(t)
	f.createQuota("q")
	for i, server := range f.servers {
		name := fmt.Sprint("p", i)
		f.create(1, name)
		err := update(f.ctx, server.Pods, name, func(pod *tenancy.Pod) {
			pod.Spec.Containers[0].Resources.Requests[corev1.ResourceCPU] = resource.MustParse("1001")
		})
		if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "exceeded quota: q") {
			t.Errorf("server %d: got %v, want Forbidden", i, err)
		}
	}
	newHistory(t, f.servers[0]).replay(t, f.client)
}
