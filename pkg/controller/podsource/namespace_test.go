// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package podsource

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	clienttesting "k8s.io/client-go/testing"

	v1 "github.com/borough-io/borough/pkg/apis/tenancy/v1"
	"github.com/borough-io/borough/pkg/generated/clientset/versioned"
	"github.com/borough-io/borough/pkg/generated/clientset/versioned/fake"
	"github.com/borough-io/borough/test/poll"
)

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }

// TestRoleIsNotBound starts a controller whose first writes of the RoleBinding fail. The Pods
// of the Namespace stay.
func TestRoleIsNotBound(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.write("a.yaml", newPod("a"))
	_, stop := f.start(f.config())
	before := f.expect("a-node-1=image:1")["a-node-1"]
	stop()

	var writes atomic.Int32
	f.wrap = func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(req *http.Request) (*http.Response, error) {
			if strings.HasSuffix(req.URL.Path, "/rolebindings") && writes.Add(1) < 3 {
				return nil, errors.New("connection refused")
			}
			return next.RoundTrip(req)
		})
	}
	c, _ := f.start(f.config())
	f.expectReady(c)
	if pod := f.expect("a-node-1=image:1")["a-node-1"]; pod.UID != before.UID || writes.Load() < 3 {
		t.Errorf("after %d writes of the RoleBinding, the Pod was %v, and is %v", writes.Load(), before.ObjectMeta, pod.ObjectMeta)
	}
}

// TestAwaitChange ends the watch of a Namespace that is being deleted. Only a change shortens
// the delay.
func TestAwaitChange(t *testing.T) {
	namespace := &v1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "n", ResourceVersion: "1"}}
	const delay = time.Minute
	for name, tc := range map[string]struct {
		send func(*watch.FakeWatcher)
		want time.Duration
	}{
		"changed":         {func(w *watch.FakeWatcher) { w.Modify(namespace) }, 0},
		"deleted":         {func(w *watch.FakeWatcher) { w.Delete(namespace) }, 0},
		"the watch ended": {(*watch.FakeWatcher).Stop, delay},
		"the watch failed": {func(w *watch.FakeWatcher) {
			w.Error(&metav1.Status{Code: http.StatusGone})
			w.Stop()
		}, delay},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				client := fake.NewClientset()
				client.PrependWatchReactor("namespaces", func(clienttesting.Action) (bool, watch.Interface, error) {
					watcher := watch.NewFakeWithChanSize(1, false)
					tc.send(watcher)
					return true, watcher, nil
				})
				c := &Controller{tenancy: client, namespace: "n"}
				began := time.Now()
				changed := c.awaitChange(t.Context(), namespace, delay)
				if got := time.Since(began); got != tc.want || changed != (tc.want < delay) {
					t.Errorf("returned %v after %s, want %s", changed, got, tc.want)
				}
			})
		})
	}
}

// TestCreatedAfterLongDeletion creates a Namespace whose deletion took an hour. The first
// attempt fails, and the next one is soon.
func TestCreatedAfterLongDeletion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const deletion = time.Hour
		began := time.Now()
		namespace := &v1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "n", DeletionTimestamp: &metav1.Time{Time: began}}}
		client := fake.NewClientset()
		client.PrependReactor("get", "namespaces", func(clienttesting.Action) (bool, runtime.Object, error) {
			if time.Since(began) < deletion {
				return true, namespace, nil
			}
			return true, nil, apierrors.NewNotFound(v1.Resource("namespaces"), "n")
		})
		client.PrependWatchReactor("namespaces", func(clienttesting.Action) (bool, watch.Interface, error) {
			watcher := watch.NewRaceFreeFake()
			time.AfterFunc(deletion-time.Since(began), func() { watcher.Delete(namespace) })
			return true, watcher, nil
		})
		attempts := 0
		client.PrependReactor("create", "namespaces", func(clienttesting.Action) (bool, runtime.Object, error) {
			if attempts++; attempts == 1 {
				return true, nil, apierrors.NewServiceUnavailable("try again")
			}
			return false, nil, nil
		})
		dynamicClient := dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), map[schema.GroupVersionResource]string{podResource: "PodList"})
		c := &Controller{tenancy: client, namespace: "n", podClient: dynamicClient.Resource(podResource).Namespace("n")}
		if _, err := c.ensureNamespace(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := time.Since(began); got > deletion+time.Second {
			t.Errorf("created after %s", got)
		}
	})
}

// TestNamespaceIsCreatedAgain deletes the Pods of a Namespace that another process has created
// again since. They stay.
func TestNamespaceIsCreatedAgain(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.write("a.yaml", newPod("a"))
	f.start(f.config())
	before := f.expect("a-node-1=image:1")["a-node-1"]
	namespace, err := f.admin.TenancyV1().Namespaces().Get(t.Context(), f.namespace, metav1.GetOptions{})
	f.must(err)
	f.wrap = func(transport http.RoundTripper) http.RoundTripper {
		var listed atomic.Bool
		return roundTripper(func(req *http.Request) (*http.Response, error) {
			if strings.HasSuffix(req.URL.Path, "/pods") && req.URL.Query().Has("labelSelector") && !listed.Swap(true) {
				f.must(f.admin.TenancyV1().Namespaces().Delete(t.Context(), f.namespace, metav1.DeleteOptions{}))
				f.expectCreatedAgain(before)
			}
			return transport.RoundTrip(req)
		})
	}
	c := f.new(f.config())
	if next, err := c.deletePods(t.Context(), namespace.UID); err != nil || !next.IsZero() {
		t.Errorf("got %v, %v", next, err)
	}
	if pod := f.pods()["a-node-1"]; pod.UID == before.UID || pod.DeletionTimestamp != nil {
		t.Errorf("the Pod was deleted: %v", pod.ObjectMeta)
	}
}

// TestNamespaceOfAnotherUser uses a Namespace that another user has requested, with the
// rights that its admin has given to the source. The other user gets none.
func TestNamespaceOfAnotherUser(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.write("a.yaml", newPod("a"))
	config := f.config()
	config.Namespace = "requested-" + f.identity.ID()
	f.namespace = config.Namespace
	tenant, err := versioned.NewForConfig(f.server.As(t, "tenant-"+f.identity.ID(), group))
	f.must(err)
	_, err = tenant.TenancyV1().NamespaceRequests().Create(t.Context(), &v1.NamespaceRequest{ObjectMeta: metav1.ObjectMeta{Name: f.namespace}}, metav1.CreateOptions{})
	f.must(err)
	bindings := f.kubernetes.RbacV1().RoleBindings(f.namespace)
	_, err = bindings.Create(t.Context(), &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "source"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: "source-" + f.identity.ID()}},
	}, metav1.CreateOptions{})
	f.must(err)

	_, stop := f.start(config)
	f.expect("a-node-1=image:1")
	stop()

	// One that may do everything.
	f.write("b.yaml", newPod("b"))
	c, err := New(f.server.Config(), config, f.metrics)
	f.must(err)
	f.must(c.Converge(t.Context()))
	list, err := bindings.List(t.Context(), metav1.ListOptions{})
	f.must(err)
	if len(list.Items) != 2 {
		t.Errorf("the Namespace has the RoleBindings %v", list.Items)
	}
}

// TestNamespaceTaken checks that a source does not use the Namespace with its name that
// another user has requested, unless the config names it.
func TestNamespaceTaken(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.write("a.yaml", newPod("a"))
	tenant, err := versioned.NewForConfig(f.server.As(t, "tenant-"+f.identity.ID(), group))
	f.must(err)
	_, err = tenant.TenancyV1().NamespaceRequests().Create(t.Context(), &v1.NamespaceRequest{ObjectMeta: metav1.ObjectMeta{Name: f.namespace}}, metav1.CreateOptions{})
	f.must(err)
	_, err = f.kubernetes.RbacV1().RoleBindings(f.namespace).Create(t.Context(), &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "trap"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: "source-" + f.identity.ID()}},
	}, metav1.CreateOptions{})
	f.must(err)
	if _, err := f.new(f.config()).getOrCreateNamespace(t.Context()); err == nil || !strings.Contains(err.Error(), "was requested by \"tenant-") {
		t.Errorf("got %v, want an error that names the user", err)
	}
	config := f.config()
	config.Namespace = f.namespace
	f.must(f.new(config).Converge(t.Context()))
	if len(f.pods()) != 1 {
		t.Error("with the Namespace in the config, the Pod is missing")
	}
}

// TestNamespaceIsDeletedAtTheStart deletes the Namespace before the informers have seen it: no
// event says that it is gone. It is created again.
func TestNamespaceIsDeletedAtTheStart(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.write("a.yaml", newPod("a"))
	f.wrap = func(transport http.RoundTripper) http.RoundTripper {
		var deleted sync.Once
		return roundTripper(func(req *http.Request) (*http.Response, error) {
			if strings.HasSuffix(req.URL.Path, "/namespaces") && req.URL.Query().Has("fieldSelector") {
				deleted.Do(func() {
					f.must(f.admin.TenancyV1().Namespaces().Delete(t.Context(), f.namespace, metav1.DeleteOptions{}))
					poll.Eventually(t, func() string {
						if _, err := f.admin.TenancyV1().Namespaces().Get(t.Context(), f.namespace, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
							return fmt.Sprintf("got %v, want 404", err)
						}
						return ""
					})
				})
			}
			return transport.RoundTrip(req)
		})
	}
	f.start(f.config())
	f.expect("a-node-1=image:1")
}
