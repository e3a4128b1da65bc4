// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/borough-io/borough/pkg/generated/clientset/versioned"
)

// TestRevocationEndsImpersonatedWatches revokes the right to impersonate while watches
// with it are open. The impersonated user keeps all rights.
func TestRevocationEndsImpersonatedWatches(t *testing.T) {
	t.Parallel()
	ns, other := newNamespace(t, borough), newNamespace(t, borough)
	for _, tc := range []struct {
		resource, namespace, name string // that the client may impersonate
		impersonated              string
	}{
		{"users", "", ns + "-alice", ns + "-alice"},
		// The right to a service account can be that in its Namespace, which is not that of the watch.
		{"serviceaccounts", other, "alice", "system:serviceaccount:" + other + ":alice"},
	} {
		t.Run(tc.resource, func(t *testing.T) {
			user, admin := ns+"-"+tc.resource, rights(t, borough)
			grant(t, borough, ns, "view", tc.impersonated)
			role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: user}, Rules: []rbacv1.PolicyRule{{
				APIGroups: []string{""}, Resources: []string{tc.resource}, ResourceNames: []string{tc.name}, Verbs: []string{"impersonate"},
			}}}
			if _, err := admin.ClusterRoles().Create(t.Context(), role, metav1.CreateOptions{}); err != nil {
				t.Fatal(err)
			}
			grant(t, borough, tc.namespace, user, user)
			revoke := admin.ClusterRoleBindings().Delete
			if tc.namespace != "" {
				revoke = admin.RoleBindings(tc.namespace).Delete
			}
			client, err := versioned.NewForConfig(impersonate(loadKubeconfig(t, issue(t, borough, "--user="+user)), tc.impersonated))
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			watches := map[string]watch.Interface{}
			for name, start := range map[string]func(context.Context, metav1.ListOptions) (watch.Interface, error){
				"pods":       client.TenancyV1().Pods(ns).Watch,
				"namespaces": client.TenancyV1().Namespaces().Watch,
				"projects":   client.TenancyV1().Projects().Watch,
			} {
				w, err := start(ctx, metav1.ListOptions{})
				if err != nil {
					t.Fatal(err)
				}
				defer w.Stop()
				watches[name] = w
			}
			if err := revoke(t.Context(), user, metav1.DeleteOptions{}); err != nil {
				t.Fatal(err)
			}
			for name, w := range watches {
				var last watch.Event
				for event := range w.ResultChan() {
					last = event
				}
				status, ok := last.Object.(*metav1.Status)
				if last.Type != watch.Error || !ok || status.Code != http.StatusForbidden || !strings.Contains(status.Message, "cannot impersonate resource") {
					t.Errorf("%s ended with %v", name, last)
				}
			}
		})
	}
}
