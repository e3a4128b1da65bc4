// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"

	"github.com/borough-io/borough/test/harness"
)

// TestPages lists Namespaces in pages as an administrator and as a user with the right to all,
// while others are created: each list is of the revision of its first page. A list of all
// continues also after a restart, when that is before the history. That of a user who sees
// a part continues with the token of the error.
func TestPages(t *testing.T) {
	t.Parallel()
	b := &harness.Borough{Dir: t.TempDir()}
	if err := b.StartServer(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = b.Stop() })
	var want []string
	for i := range 10 {
		name := fmt.Sprintf("pages-%d", i)
		b.Kubectl(t, "create", "namespace", name)
		want = append(want, name)
	}
	b.Kubectl(t, "create", "clusterrolebinding", "viewer", "--clusterrole=view", "--user=viewer")
	admin := coreClient(t, b, runtime.ContentTypeProtobuf)
	as := func(user string) kubernetes.Interface {
		client, err := kubernetes.NewForConfig(impersonate(b.Config(t, "admin"), user))
		if err != nil {
			t.Fatal(err)
		}
		return client
	}
	viewer := as("viewer")
	page := func(client kubernetes.Interface, token string) (*corev1.NamespaceList, error) {
		return client.CoreV1().Namespaces().List(t.Context(), metav1.ListOptions{Limit: 3, Continue: token})
	}
	for user, client := range map[string]kubernetes.Interface{"admin": admin, "viewer": viewer} {
		list, err := page(client, "")
		if err != nil {
			t.Fatal(err)
		}
		names, revision := namesOf(list), list.ResourceVersion
		b.Kubectl(t, "create", "namespace", "pages-5-"+user)
		for list.Continue != "" {
			left := *list.RemainingItemCount
			if list, err = page(client, list.Continue); err != nil {
				t.Fatal(err)
			}
			wantEqual(t, "resourceVersion", list.ResourceVersion, revision)
			if list.RemainingItemCount != nil {
				left -= *list.RemainingItemCount
			}
			wantEqual(t, "number of items", len(list.Items), int(left))
			names = append(names, namesOf(list)...)
		}
		if got := slices.DeleteFunc(names, func(name string) bool { return !strings.HasPrefix(name, "pages-") }); !slices.Equal(got, want) {
			t.Errorf("%s: got %v, want %v", user, got, want)
		}
		want = slices.Insert(want, slices.Index(want, "pages-6"), "pages-5-"+user)
		slices.Sort(want)
	}

	var err error
	b.Kubectl(t, "create", "clusterrole", "some", "--verb=get", "--resource=namespaces",
		"--resource-name=pages-1", "--resource-name=pages-2", "--resource-name=pages-3", "--resource-name=pages-4")
	b.Kubectl(t, "create", "clusterrolebinding", "some", "--clusterrole=some", "--user=alice")
	alice := as("alice")
	clients := map[string]kubernetes.Interface{"admin": admin, "viewer": viewer, "alice": alice}
	first := map[string]*corev1.NamespaceList{}
	for user, client := range clients {
		if first[user], err = page(client, ""); err != nil {
			t.Fatal(err)
		}
	}
	b.Kubectl(t, "create", "namespace", "pages-5-later")
	if err := b.Stop(); err != nil {
		t.Fatal(err)
	}
	if err := b.StartServer(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, user := range []string{"admin", "viewer"} {
		list, names := first[user], namesOf(first[user])
		for list.Continue != "" {
			if list, err = page(clients[user], list.Continue); err != nil {
				t.Fatalf("%s, after a restart: %v", user, err)
			}
			wantEqual(t, "resourceVersion", list.ResourceVersion, first[user].ResourceVersion)
			names = append(names, namesOf(list)...)
		}
		if got := slices.DeleteFunc(names, func(name string) bool { return !strings.HasPrefix(name, "pages-") }); !slices.Equal(got, want) {
			t.Errorf("%s, after a restart: got %v, want %v", user, got, want)
		}
	}
	// At a revision before the start, what a user saw is not known any more.
	exact := metav1.ListOptions{Limit: 3, ResourceVersion: first["admin"].ResourceVersion, ResourceVersionMatch: metav1.ResourceVersionMatchExact}
	if list, err := admin.CoreV1().Namespaces().List(t.Context(), exact); err != nil || !slices.Equal(namesOf(list), namesOf(first["admin"])) {
		t.Errorf("admin, at the revision before the restart: %v, %v", list, err)
	}
	if _, err := viewer.CoreV1().Namespaces().List(t.Context(), exact); !apierrors.IsResourceExpired(err) {
		t.Errorf("viewer, at the revision before the restart: %v", err)
	}
	_, err = page(alice, first["alice"].Continue)
	status, ok := err.(apierrors.APIStatus)
	if !apierrors.IsResourceExpired(err) || !ok {
		t.Fatalf("alice, after a restart: %v", err)
	}
	rest, err := page(alice, status.Status().Continue)
	if err != nil {
		t.Fatal(err)
	}
	if names := append(namesOf(first["alice"]), namesOf(rest)...); !slices.Equal(names, []string{"pages-1", "pages-2", "pages-3", "pages-4"}) {
		t.Errorf("alice continues: %v", names)
	}
}

func namesOf(list *corev1.NamespaceList) (names []string) {
	for i := range list.Items {
		names = append(names, list.Items[i].Name)
	}
	return names
}
