// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package charge_test

import (
	"fmt"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
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
