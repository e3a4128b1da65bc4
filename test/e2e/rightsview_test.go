// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"net/url"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	v1 "github.com/borough-io/borough/pkg/apis/tenancy/v1"
)

// TestRightToAllNamespaces grants a user the right to list and watch all Namespaces and
// revokes it. A watch continues through both, and a list at a revision has what she
// could see then.
func TestRightToAllNamespaces(t *testing.T) {
	t.Parallel()
	ns, own := newNamespace(t, borough), newNamespace(t, borough)
	user := ns + "-alice"
	grant(t, borough, own, "view", user)
	namespaces := clientAs(t, borough, user).TenancyV1().Namespaces()
	names := func(options metav1.ListOptions) (string, string) {
		t.Helper()
		list, err := namespaces.List(t.Context(), options)
		if err != nil {
			t.Fatal(err)
		}
		var found string
		for _, item := range list.Items {
			if item.Name == ns || item.Name == own {
				found += item.Name + " "
			}
		}
		return found, list.ResourceVersion
	}
	found, before := names(metav1.ListOptions{})
	wantEqual(t, "the list before the grant", found, own+" ")
	w, err := namespaces.Watch(t.Context(), metav1.ListOptions{ResourceVersion: before})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	want := func(w watch.Interface, kind watch.EventType) *v1.Namespace {
		t.Helper()
		for event := range w.ResultChan() {
			namespace, ok := event.Object.(*v1.Namespace)
			if !ok {
				t.Fatalf("got %v", event)
			}
			if event.Type == watch.Deleted && namespace.Name == own {
				t.Fatalf("%s, which the user may still get, is deleted", own)
			}
			if namespace.Name == ns {
				if event.Type != kind {
					t.Fatalf("got %v, want %s", event, kind)
				}
				return namespace
			}
		}
		t.Fatalf("the watch has ended without %s", kind)
		return nil
	}

	grant(t, borough, "", "view", user)
	added := want(w, watch.Added)
	found, during := names(metav1.ListOptions{})
	if found != own+" "+ns+" " && found != ns+" "+own+" " {
		t.Errorf("with the right to all, the list has %q", found)
	}
	byRight, err := namespaces.Watch(t.Context(), metav1.ListOptions{ResourceVersion: during})
	if err != nil {
		t.Fatal(err)
	}
	defer byRight.Stop()
	exact := func(revision string) metav1.ListOptions {
		return metav1.ListOptions{ResourceVersion: revision, ResourceVersionMatch: metav1.ResourceVersionMatchExact}
	}
	found, _ = names(exact(before))
	wantEqual(t, "with the right to all, the list before the grant", found, own+" ")

	if err := rights(t, borough).ClusterRoleBindings().Delete(t.Context(), user, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	deleted := want(w, watch.Deleted)
	if deleted.UID != added.UID || deleted.ResourceVersion == added.ResourceVersion {
		t.Errorf("got DELETED of %s at %s, ADDED of %s at %s", deleted.UID, deleted.ResourceVersion, added.UID, added.ResourceVersion)
	}
	wantEqual(t, "the revision at which a watch by right has lost it", want(byRight, watch.Deleted).ResourceVersion, deleted.ResourceVersion)
	found, _ = names(metav1.ListOptions{})
	wantEqual(t, "the list after the revocation", found, own+" ")
	if found, _ = names(exact(during)); len(found) != len(ns)+len(own)+2 {
		t.Errorf("after the revocation, the list at a revision before has %q", found)
	}
}

// TestWatchOfOneNamespace revokes one of two rights to a Namespace that the user watches by
// its name, and then lets the right come back: the watch shows what the user sees.
func TestWatchOfOneNamespace(t *testing.T) {
	t.Parallel()
	ns, own := newNamespace(t, borough), newNamespace(t, borough)
	user := ns + "-alice"
	grant(t, borough, own, "view", user)
	grant(t, borough, "", "view", user)
	namespaces := clientAs(t, borough, user).TenancyV1().Namespaces()
	watchOne := func(name, revision string) watch.Interface {
		t.Helper()
		w, err := namespaces.Watch(t.Context(), metav1.ListOptions{FieldSelector: "metadata.name=" + name, ResourceVersion: revision})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(w.Stop)
		return w
	}
	got := func(w watch.Interface) string {
		t.Helper()
		event := <-w.ResultChan()
		namespace, ok := event.Object.(*v1.Namespace)
		if !ok {
			t.Fatalf("got %v", event)
		}
		return fmt.Sprint(event.Type, " ", namespace.Annotations["step"])
	}
	annotate := func(name, step string) {
		t.Helper()
		patch := fmt.Appendf(nil, `{"metadata":{"annotations":{"step":%q}}}`, step)
		if _, err := borough.Client(t).TenancyV1().Namespaces().Patch(t.Context(), name, types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	list, err := namespaces.List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	both, revoked := watchOne(own, list.ResourceVersion), watchOne(ns, list.ResourceVersion)
	if err := rights(t, borough).ClusterRoleBindings().Delete(t.Context(), user, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	annotate(own, "revoked")
	annotate(ns, "revoked")
	wantEqual(t, "with a right in the Namespace", got(both), "MODIFIED revoked")
	wantEqual(t, "without a right", got(revoked), "DELETED ")
	annotate(ns, "granted")
	grant(t, borough, "", "view", user)
	wantEqual(t, "with the right again", got(revoked), "ADDED granted")
	resumed := watchOne(ns, list.ResourceVersion)
	wantEqual(t, "resumed, the revocation", got(resumed), "DELETED ")
	wantEqual(t, "resumed, the grant", got(resumed), "ADDED granted")

	// By the path, which the right that exists again allows.
	raw := as(t, borough, user)
	for _, prefix := range []string{api, "/api/v1"} {
		path, bookmarks := prefix+"/watch/namespaces/"+ns, url.Values{"allowWatchBookmarks": {"true"}}
		begun := streamAs(t, raw, path, bookmarks)
		bookmarks.Set("resourceVersion", list.ResourceVersion)
		continued := streamAs(t, raw, path, bookmarks)
		wantEqual(t, "by path, the revocation", nextStep(t, continued), "DELETED ")
		wantEqual(t, "by path, the grant", nextStep(t, continued), "ADDED granted")
		wantEqual(t, "by path, the state", nextStep(t, begun), "ADDED granted")
		annotate(ns, prefix)
		wantEqual(t, "by path, a change", nextStep(t, begun), "MODIFIED "+prefix)
		annotate(ns, "granted")
	}
}

// nextStep returns the type of the next event that is not a bookmark, and the annotation step.
func nextStep(t *testing.T, next func() streamed) string {
	t.Helper()
	for {
		if event := next(); event.Type != watch.Bookmark {
			return fmt.Sprint(event.Type, " ", event.meta(t).Annotations["step"])
		}
	}
}
