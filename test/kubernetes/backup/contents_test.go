// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package backup

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"

	v1 "github.com/borough-io/borough/pkg/apis/tenancy/v1"
	tenancyv1 "github.com/borough-io/borough/pkg/generated/clientset/versioned/typed/tenancy/v1"
	"github.com/borough-io/borough/test/harness"
	"github.com/borough-io/borough/test/poll"
)

func createNamespace(t *testing.T, client tenancyv1.TenancyV1Interface, name string) *v1.Namespace {
	t.Helper()
	ns, err := client.Namespaces().Create(t.Context(), &v1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatalf("create a Namespace: %v", err)
	}
	return ns
}

func createPod(t *testing.T, client tenancyv1.TenancyV1Interface, namespace, name string, finalizers ...string) *v1.Pod {
	t.Helper()
	pod, err := client.Pods(namespace).Create(t.Context(), harness.NewPod(name, finalizers...), metav1.CreateOptions{})
	if err != nil {
		t.Fatalf("create a Pod: %v", err)
	}
	return pod
}

func createLimitRange(t *testing.T, client tenancyv1.TenancyV1Interface, namespace string) {
	t.Helper()
	_, err := client.LimitRanges(namespace).Create(t.Context(), &v1.LimitRange{
		ObjectMeta: metav1.ObjectMeta{Name: "limits"},
		Spec:       corev1.LimitRangeSpec{Limits: []corev1.LimitRangeItem{{Type: corev1.LimitTypePod}}},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatalf("create a LimitRange: %v", err)
	}
}

// contents returns all objects by kind and name.
func contents(ctx context.Context, client tenancyv1.TenancyV1Interface) (map[string]runtime.Object, error) {
	all := map[string]runtime.Object{}
	for kind, list := range map[string]func() (runtime.Object, error){
		"Namespace":     func() (runtime.Object, error) { return client.Namespaces().List(ctx, metav1.ListOptions{}) },
		"LimitRange":    func() (runtime.Object, error) { return client.LimitRanges("").List(ctx, metav1.ListOptions{}) },
		"ResourceQuota": func() (runtime.Object, error) { return client.ResourceQuotas("").List(ctx, metav1.ListOptions{}) },
		"Pod":           func() (runtime.Object, error) { return client.Pods("").List(ctx, metav1.ListOptions{}) },
	} {
		objects, err := list()
		if err != nil {
			return nil, fmt.Errorf("list all of kind %s: %w", kind, err)
		}
		err = meta.EachListItem(objects, func(object runtime.Object) error {
			accessor, err := meta.Accessor(object)
			if err == nil {
				all[kind+" "+accessor.GetNamespace()+"/"+accessor.GetName()] = object.DeepCopyObject()
			}
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	return all, nil
}

func mustContents(t *testing.T, client tenancyv1.TenancyV1Interface) map[string]runtime.Object {
	t.Helper()
	all, err := contents(t.Context(), client)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// wantRestored fails the test unless all objects are unchanged, including UIDs
// and resourceVersions.
func wantRestored(t *testing.T, client tenancyv1.TenancyV1Interface, want map[string]runtime.Object) {
	t.Helper()
	got := mustContents(t, client)
	for name, object := range want {
		if diff := cmp.Diff(object, got[name]); diff != "" {
			t.Errorf("%s after the restore (-want +got):\n%s", name, diff)
		}
	}
}

// wantExpired fails the test unless a watch from a resourceVersion of before the
// restore gets Expired, so that the client lists again.
func wantExpired(t *testing.T, client tenancyv1.TenancyV1Interface, resourceVersion string) {
	t.Helper()
	err := func() error {
		watcher, err := client.Pods("").Watch(t.Context(), metav1.ListOptions{ResourceVersion: resourceVersion, TimeoutSeconds: new(int64(60))})
		if err != nil {
			return err
		}
		defer watcher.Stop()
		event, open := <-watcher.ResultChan()
		if !open {
			return errors.New("the watch ended")
		}
		if event.Type == watch.Error {
			return apierrors.FromObject(event.Object)
		}
		return fmt.Errorf("event %s", event.Type)
	}()
	if !apierrors.IsResourceExpired(err) && !apierrors.IsGone(err) {
		t.Errorf("watch from resourceVersion %s: got %v, want Expired", resourceVersion, err)
	}
}

// wantFenced fails the test unless objects can be created in existing
// Namespaces and nowhere else.
func wantFenced(t *testing.T, client tenancyv1.TenancyV1Interface, live, terminating string) {
	t.Helper()
	if _, err := client.Pods(terminating).Create(t.Context(), harness.NewPod("late"), metav1.CreateOptions{}); !apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) {
		t.Errorf("create in a terminating Namespace: got %v", err)
	}
	if _, err := client.Pods("nowhere").Create(t.Context(), harness.NewPod("lost"), metav1.CreateOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("create in a missing Namespace: got %v", err)
	}
	createPod(t, client, live, "after-the-restore")
}

// awaitGone waits until Namespaces are removed.
func awaitGone(t *testing.T, client tenancyv1.TenancyV1Interface, names ...string) {
	t.Helper()
	for _, name := range names {
		poll.Eventually(t, harness.Gone(t, client.Namespaces(), name))
	}
}
