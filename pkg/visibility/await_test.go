// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package visibility_test

import (
	"context"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestAwaitWrite checks that a write to the policy is in force when it was awaited, also at
// a revision without a change: a delete that etcd did not answer has a later revision.
func TestAwaitWrite(t *testing.T) {
	f := newFixture(t)
	f.run(t)
	roles := rbacv1.Resource("roles")
	for range 20 {
		written := f.write(t, []metav1.Object{&rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "r"}}}, nil)
		if err := f.views.AwaitWrite(t.Context(), roles, written); err != nil || f.views.Feed().Revision() < written {
			t.Errorf("reached %d, %v, want %d", f.views.Feed().Revision(), err, written)
		}
		response, err := f.client.Put(t.Context(), "/elsewhere", "")
		if err != nil {
			t.Fatal(err)
		}
		if err := f.views.AwaitWrite(t.Context(), roles, response.Header.Revision); err != nil {
			t.Errorf("at a revision without a change: %v", err)
		}
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if err := f.views.AwaitWrite(ended, roles, 1000); err == nil {
		t.Error("a write that the views do not have is in force")
	}
	if err := f.views.AwaitWrite(ended, rbacv1.Resource("others"), 1000); err != nil {
		t.Errorf("a write to another resource: %v", err)
	}
}
