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
	ns := newNamespace(t, borough)
	user, alice := ns+"-bob", ns+"-alice"
	grant(t, borough, ns, "view", alice)
	grantRule(t, borough, user, rbacv1.PolicyRule{
		APIGroups: []string{""}, Resources: []string{"users"}, ResourceNames: []string{alice}, Verbs: []string{"impersonate"},
	})
	client, err := versioned.NewForConfig(impersonate(loadKubeconfig(t, issue(t, borough, "--user="+user)), alice))
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
	if err := rights(t, borough).ClusterRoleBindings().Delete(t.Context(), user, metav1.DeleteOptions{}); err != nil {
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
}
