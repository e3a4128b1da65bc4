// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	rbacclient "k8s.io/client-go/kubernetes/typed/rbac/v1"

	v1 "github.com/borough-io/borough/pkg/apis/tenancy/v1"
	"github.com/borough-io/borough/pkg/storage/storagetest"
	"github.com/borough-io/borough/test/poll"
)

// TestRightsOnAnotherServer grants and revokes on one server while the other one serves
// the user.
func TestRightsOnAnotherServer(t *testing.T) {
	t.Parallel()
	first, second, _ := startTwo(t, storagetest.StartGRPC(t), nil)
	ns := newNamespace(t, first)
	there := clientAs(t, second, "alice").TenancyV1().Pods(ns)
	list := func(ctx context.Context) error {
		_, err := there.List(ctx, metav1.ListOptions{})
		return err
	}
	for range 10 {
		grant(t, first, ns, "view", "alice")
		poll.Eventually(t, func() string {
			if err := list(t.Context()); err != nil {
				return err.Error()
			}
			return ""
		})
		if err := rights(t, first).RoleBindings(ns).Delete(t.Context(), "alice", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		poll.Eventually(t, func() string {
			if err := list(t.Context()); !apierrors.IsForbidden(err) {
				return fmt.Sprintf("got %v, want Forbidden", err)
			}
			return ""
		})
	}
}

// TestRevokedByAnotherServer deletes, through a server whose watches are delayed, a RoleBinding
// that another server has just deleted. When that is answered, the right is gone.
func TestRevokedByAnotherServer(t *testing.T) {
	t.Parallel()
	first, second, proxy := startTwo(t, storagetest.StartGRPC(t), nil)
	ns := newNamespace(t, first)
	there := rights(t, second).RoleBindings(ns)
	for name, write := range map[string]func() error{
		"delete": func() error { return there.Delete(t.Context(), "alice", metav1.DeleteOptions{}) },
		"delete of a collection": func() error {
			return there.DeleteCollection(t.Context(), metav1.DeleteOptions{}, metav1.ListOptions{FieldSelector: "metadata.name=alice"})
		},
		"patch": func() error {
			_, err := there.Patch(t.Context(), "alice", types.MergePatchType, []byte(`{"subjects":[]}`), metav1.PatchOptions{})
			return err
		},
	} {
		proxy.SetDelay(0)
		grant(t, first, ns, "view", "alice")
		pods := clientAs(t, second, "alice").TenancyV1().Pods(ns)
		poll.Eventually(t, func() string {
			if _, err := pods.List(t.Context(), metav1.ListOptions{}); err != nil {
				return err.Error()
			}
			return ""
		})
		proxy.SetDelay(500 * time.Millisecond)
		if err := rights(t, first).RoleBindings(ns).Delete(t.Context(), "alice", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		if err := write(); err != nil && !apierrors.IsNotFound(err) {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := pods.List(t.Context(), metav1.ListOptions{}); !apierrors.IsForbidden(err) {
			t.Errorf("after the %s: got %v, want Forbidden", name, err)
		}
	}
}

// TestGrantsOnAnotherServer lets a user grant rights through a server whose watches are
// delayed, right after another server has created the role, and has revoked the rights of
// the user. A NamespaceTemplate with a RoleBinding grants rights, too.
func TestGrantsOnAnotherServer(t *testing.T) {
	t.Parallel()
	first, second, proxy := startTwo(t, storagetest.StartGRPC(t), nil)
	ns := newNamespace(t, first)
	grant(t, first, ns, "admin", "alice")
	client, err := rbacclient.NewForConfig(impersonate(second.Config(t, "admin"), "alice"))
	if err != nil {
		t.Fatal(err)
	}
	there := client.RoleBindings(ns)
	granter := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "alice"}, Rules: []rbacv1.PolicyRule{
		{Verbs: []string{"create"}, APIGroups: []string{v1.GroupName}, Resources: []string{"namespacetemplates"}},
		{Verbs: []string{"bind"}, APIGroups: []string{rbacv1.GroupName}, Resources: []string{"clusterroles"}},
	}}
	if _, err := rights(t, first).ClusterRoles().Create(t.Context(), granter, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	grant(t, first, "", "alice", "alice")
	tryTemplate := func(dryRun ...string) error {
		_, err := clientAs(t, second, "alice").TenancyV1().NamespaceTemplates().Create(t.Context(), newTemplate("t"), metav1.CreateOptions{DryRun: dryRun})
		return err
	}
	poll.Eventually(t, func() string {
		_, err := there.List(t.Context(), metav1.ListOptions{})
		if err := errors.Join(err, tryTemplate(metav1.DryRunAll)); err != nil {
			return err.Error()
		}
		return ""
	})
	proxy.SetDelay(500 * time.Millisecond)
	role := &rbacv1.Role{
		ObjectMeta: metav1.ObjectMeta{Name: "r"},
		Rules:      []rbacv1.PolicyRule{{Verbs: []string{"get"}, APIGroups: []string{v1.GroupName}, Resources: []string{"pods"}}},
	}
	if _, err := rights(t, first).Roles(ns).Create(t.Context(), role, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := there.Create(t.Context(), newRoleBinding("new-role", "Role", "r", "bob"), metav1.CreateOptions{}); err != nil {
		t.Errorf("bind a role that another server has created: %v", err)
	}
	granter.Rules = granter.Rules[:1]
	if _, err := rights(t, first).ClusterRoles().Update(t.Context(), granter, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := tryTemplate(); !apierrors.IsForbidden(err) {
		t.Errorf("create a template with a role that the user may not bind since another server has revoked it: %v", err)
	}
	if err := rights(t, first).RoleBindings(ns).Delete(t.Context(), "alice", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := there.Create(t.Context(), newRoleBinding("revoked", "ClusterRole", "view", "bob"), metav1.CreateOptions{}); !apierrors.IsForbidden(err) {
		t.Errorf("grant rights that another server has revoked: %v", err)
	}
}

// TestRightsAreNotCurrent grants rights, and deletes a grant, through a server that does not follow
// the other one in time. It answers 504, because it does not know whether the rights were revoked.
func TestRightsAreNotCurrent(t *testing.T) {
	t.Parallel()
	first, second, proxy := startTwo(t, storagetest.StartGRPC(t), nil)
	ns := newNamespace(t, first)
	grant(t, first, ns, "admin", "alice")
	grant(t, first, ns, "view", "bob")
	// client-go would repeat requests that are answered with 504.
	path := "/apis/rbac.authorization.k8s.io/v1/namespaces/" + ns + "/rolebindings"
	alice, admin := as(t, second, "alice"), second.HTTP(t)
	poll.Eventually(t, func() string {
		for _, name := range []string{"alice", "bob"} {
			if answer := alice.Do(t, http.MethodGet, path+"/"+name, nil); answer.Code != http.StatusOK {
				return answer.String()
			}
		}
		return ""
	})
	proxy.SetDelay(8 * time.Second)
	here := rights(t, first).RoleBindings(ns)
	for _, name := range []string{"alice", "bob"} {
		if err := here.Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	created := `{"metadata":{"name":"revoked"},"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"ClusterRole","name":"view"}}`
	wantStatus(t, alice.Do(t, http.MethodPost, path, []byte(created), "Content-Type", "application/json"), 504, "nothing was written")
	wantStatus(t, admin.Do(t, http.MethodDelete, path+"/bob", nil), 504, "decisions can depend on deleted ones")
	if list, err := here.List(t.Context(), metav1.ListOptions{}); err != nil || len(list.Items) != 0 {
		t.Errorf("got %v, %v, want no binding", list, err)
	}
}
