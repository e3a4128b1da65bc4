// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/borough-io/borough/pkg/generated/clientset/versioned"
	"github.com/borough-io/borough/test/poll"
)

// TestUserReachesTheServer compares the user in the server's audit log with the
// user that the cluster authenticated.
func TestUserReachesTheServer(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	byCertificate, err := cluster.UserConfig("carol", "system:masters", "red team")
	if err != nil {
		t.Fatal(err)
	}
	byToken, err := cluster.ServiceAccountConfig(ctx, "default", "default")
	if err != nil {
		t.Fatal(err)
	}
	grant(t, "", rbacv1.Subject{Kind: "ServiceAccount", Namespace: "default", Name: "default"},
		rbacv1.PolicyRule{APIGroups: []string{"tenancy.borough.io"}, Resources: []string{"namespaces"}, Verbs: []string{"get"}})
	serviceAccount, err := cluster.Client(t).CoreV1().ServiceAccounts("default").Get(ctx, "default", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	impersonated := cluster.AdminConfig()
	impersonated.Impersonate = rest.ImpersonationConfig{
		UserName: "dave", UID: "4711", Groups: []string{"blue team", "system:masters"},
		Extra: map[string][]string{"example.com/Scope": {"a b", "ünïcode%"}},
	}

	for _, tc := range []struct {
		name   string
		config *rest.Config
		want   authenticationv1.UserInfo
	}{
		{"certificate", byCertificate, authenticationv1.UserInfo{
			Username: "carol",
			Groups:   []string{"red team", "system:authenticated", "system:masters"},
		}},
		{"token", byToken, authenticationv1.UserInfo{
			Username: "system:serviceaccount:default:default",
			UID:      string(serviceAccount.UID),
			Groups:   []string{"system:authenticated", "system:serviceaccounts", "system:serviceaccounts:default"},
		}},
		{"impersonation", impersonated, authenticationv1.UserInfo{
			Username: "dave",
			UID:      "4711",
			Groups:   []string{"blue team", "system:authenticated", "system:masters"},
			Extra:    map[string]authenticationv1.ExtraValue{"example.com/scope": {"a b", "ünïcode%"}},
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			agent := newName("agent")
			config := rest.CopyConfig(tc.config)
			config.UserAgent = agent
			client, err := versioned.NewForConfig(config)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := client.TenancyV1().Namespaces().Get(ctx, "default", metav1.GetOptions{}); err != nil {
				t.Fatal(err)
			}
			var got authenticationv1.UserInfo
			poll.Eventually(t, func() string {
				return findAudit(t, func(event auditEvent) bool {
					got = event.User
					return event.UserAgent == agent
				})
			})
			slices.Sort(got.Groups)
			if tc.name == "token" {
				// It identifies the token, which differs in every run.
				if id := got.Extra["authentication.kubernetes.io/credential-id"]; len(id) != 1 || !strings.HasPrefix(id[0], "JTI=") {
					t.Errorf("extra: got %v, want the token's id", got.Extra)
				}
				got.Extra = nil
			}
			// A user with a client certificate has its fingerprint as an extra.
			if tc.name == "certificate" {
				if id := got.Extra["authentication.kubernetes.io/credential-id"]; len(id) != 1 || !strings.HasPrefix(id[0], "X509SHA256=") {
					t.Errorf("extra: got %v, want the certificate's fingerprint", got.Extra)
				}
				got.Extra = nil
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("the user differs (-want +got):\n%s", diff)
			}
		})
	}
}

// grant gives rights in a namespace of the cluster by a Role. If the namespace
// is empty, it gives them in all namespaces and for cluster-scoped resources by
// a ClusterRole.
func grant(t *testing.T, namespace string, subject rbacv1.Subject, rules ...rbacv1.PolicyRule) {
	t.Helper()
	ctx := t.Context()
	rbac := cluster.Client(t).RbacV1()
	meta := metav1.ObjectMeta{Name: newName("granted"), Namespace: namespace}
	ref := rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: meta.Name}
	var err, bindErr error
	if namespace == "" {
		ref.Kind = "ClusterRole"
		_, err = rbac.ClusterRoles().Create(ctx, &rbacv1.ClusterRole{ObjectMeta: meta, Rules: rules}, metav1.CreateOptions{})
		_, bindErr = rbac.ClusterRoleBindings().Create(ctx, &rbacv1.ClusterRoleBinding{ObjectMeta: meta, RoleRef: ref, Subjects: []rbacv1.Subject{subject}}, metav1.CreateOptions{})
	} else {
		_, err = rbac.Roles(namespace).Create(ctx, &rbacv1.Role{ObjectMeta: meta, Rules: rules}, metav1.CreateOptions{})
		_, bindErr = rbac.RoleBindings(namespace).Create(ctx, &rbacv1.RoleBinding{ObjectMeta: meta, RoleRef: ref, Subjects: []rbacv1.Subject{subject}}, metav1.CreateOptions{})
	}
	if err != nil || bindErr != nil {
		t.Fatalf("grant rights: %v, %v", err, bindErr)
	}
}

// TestRightsInOneNamespace checks a tenant whose rights are from a RoleBinding
// in the cluster's namespace of the same name.
func TestRightsInOneNamespace(t *testing.T) {
	t.Parallel()
	mine, other := newNamespace(t), newNamespace(t)
	newClusterNamespace(t, mine)
	user := newName("erin")
	grant(t, mine, rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: "User", Name: user},
		rbacv1.PolicyRule{APIGroups: []string{"tenancy.borough.io"}, Resources: []string{"pods"}, Verbs: []string{"*"}},
		rbacv1.PolicyRule{APIGroups: []string{"tenancy.borough.io"}, Resources: []string{"limitranges", "namespaces"}, Verbs: []string{"get"}},
	)
	config, err := cluster.UserConfig(user)
	if err != nil {
		t.Fatal(err)
	}
	kubectl := cluster.KubectlAs(t, config)
	pod := fmt.Sprintf(podManifest, "example.com/web:1")

	poll.Eventually(t, func() string { // until the authorizer's cache has the grant
		_, stderr, err := kubectl.Try(t.Context(), pod, "create", "-n", mine, "-f", "-")
		if err != nil && !strings.Contains(stderr, "AlreadyExists") {
			return stderr
		}
		return ""
	})
	wantContains(t, kubectl.Run(t, "get", pods, "-n", mine), "web")
	wantContains(t, kubectl.Run(t, "get", namespaces, mine), "Active")
	kubectl.Run(t, "delete", pods, "-n", mine, "--all")

	forbidden := fmt.Sprintf("(Forbidden): pods.tenancy.borough.io is forbidden: User %q cannot list resource %q in API group %q in the namespace %q", user, "pods", "tenancy.borough.io", other)
	wantContains(t, kubectl.Fails(t, "get", pods, "-n", other), forbidden)
	for _, args := range [][]string{
		{"get", pods, "--all-namespaces"},
		{"get", namespaces},
		{"get", namespaces, other},
		{"get", limitRanges, "-n", mine},
		{"delete", namespaces, mine},
		{"delete", limitRanges, "-n", mine, "--all"},
		{"get", "pods", "-n", mine}, // core's Pods
	} {
		wantContains(t, kubectl.Fails(t, args...), "(Forbidden)", user)
	}
}

// TestWithoutTheCluster connects to our server directly.
func TestWithoutTheCluster(t *testing.T) {
	t.Parallel()
	const path = "/apis/tenancy.borough.io/v1/namespaces"
	// The server ignores the headers without the front proxy's certificate, even
	// with another valid client certificate.
	user, err := cluster.UserConfig(newName("frank"))
	if err != nil {
		t.Fatal(err)
	}
	forged := []string{"X-Remote-User", "admin", "X-Remote-Group", "system:masters"}
	if answer := newDirect(t, &rest.Config{}).Do(t, http.MethodGet, path, nil, forged...); answer.Code != http.StatusForbidden && answer.Code != http.StatusUnauthorized {
		t.Errorf("headers of an unknown user: got %v", answer)
	}
	if answer := newDirect(t, user).Do(t, http.MethodGet, path, nil, forged...); answer.Code != http.StatusForbidden {
		t.Errorf("headers of a user without rights: got %v", answer)
	}
	// Our server authenticates the users of the cluster.
	if answer := newDirect(t, cluster.AdminConfig()).Do(t, http.MethodGet, path, nil); answer.Code != http.StatusOK {
		t.Errorf("an admin of the cluster: got %v", answer)
	}
	token, err := cluster.ServiceAccountConfig(t.Context(), "borough-system", "borough-controller-manager")
	if err != nil {
		t.Fatal(err)
	}
	if answer := newDirect(t, token).Do(t, http.MethodGet, path, nil); answer.Code != http.StatusOK {
		t.Errorf("a service account with rights: got %v", answer)
	}
}

// TestErrorsPassThrough gets our server's errors through the cluster.
func TestErrorsPassThrough(t *testing.T) {
	t.Parallel()
	client := cluster.BoroughClient(t).TenancyV1()
	_, err := client.Namespaces().Get(t.Context(), "nowhere", metav1.GetOptions{})
	if !apierrors.IsNotFound(err) || err.Error() != `namespaces.tenancy.borough.io "nowhere" not found` {
		t.Errorf("a missing Namespace: got %v", err)
	}
	_, err = client.LimitRanges("nowhere").Create(t.Context(), newLimitRange(corev1.LimitTypePod), metav1.CreateOptions{})
	if !apierrors.IsNotFound(err) {
		t.Errorf("content in a missing Namespace: got %v", err)
	}
	_, err = client.LimitRanges("default").Create(t.Context(), newLimitRange("no type"), metav1.CreateOptions{})
	if !apierrors.IsInvalid(err) || !apierrors.HasStatusCause(err, metav1.CauseTypeFieldValueInvalid) {
		t.Errorf("a LimitRange of an invalid type: got %v", err)
	}
}
