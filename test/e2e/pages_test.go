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

// TestPages lists Namespaces in pages as the admin and as a user with the right to all,
// while others are created: each list is of the revision of its first page. After a
// restart, that is before the history, and the list continues with the token of the error.
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
	viewer := b.Config(t, "admin")
	viewer.Impersonate.UserName = "viewer"
	asViewer, err := kubernetes.NewForConfig(viewer)
	if err != nil {
		t.Fatal(err)
	}
	page := func(client kubernetes.Interface, token string) (*corev1.NamespaceList, error) {
		return client.CoreV1().Namespaces().List(t.Context(), metav1.ListOptions{Limit: 3, Continue: token})
	}
	for user, client := range map[string]kubernetes.Interface{"admin": admin, "viewer": asViewer} {
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

	list, err := page(admin, "")
	if err != nil {
		t.Fatal(err)
	}
	first := namesOf(list)
	b.Kubectl(t, "create", "namespace", "later")
	if err := b.Stop(); err != nil {
		t.Fatal(err)
	}
	if err := b.StartServer(t.Context()); err != nil {
		t.Fatal(err)
	}
	_, err = page(admin, list.Continue)
	status, ok := err.(apierrors.APIStatus)
	if !apierrors.IsResourceExpired(err) || !ok {
		t.Fatalf("after a restart: %v", err)
	}
	rest, err := page(admin, status.Status().Continue)
	if err != nil {
		t.Fatal(err)
	}
	if slices.Contains(first, rest.Items[0].Name) || rest.Items[0].Name < first[len(first)-1] {
		t.Errorf("%v continues with %s", first, rest.Items[0].Name)
	}
}

func namesOf(list *corev1.NamespaceList) (names []string) {
	for i := range list.Items {
		names = append(names, list.Items[i].Name)
	}
	return names
}
