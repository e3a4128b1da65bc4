// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package storage_test

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/embed"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metainternal "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	genericrequest "k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"
	apistorage "k8s.io/apiserver/pkg/storage"
	"k8s.io/apiserver/pkg/storage/feature"

	"github.com/borough-io/borough/pkg/apis/tenancy"
	"github.com/borough-io/borough/pkg/storage"
	"github.com/borough-io/borough/pkg/storage/embedded"
	"github.com/borough-io/borough/pkg/storage/storagetest"
	"github.com/borough-io/borough/test/leaktest"
	"github.com/borough-io/borough/test/poll"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

// server is an etcd, the stores on it, and a client that reads it directly.
type server struct {
	storagetest.Stores
	client  *clientv3.Client
	options *storage.Options
	config  storage.Config
}

// onBoth runs a test in-process and over gRPC.
func onBoth(t *testing.T, change func(*storage.Options), test func(t *testing.T, s server)) {
	t.Helper()
	onBothWithQuota(t, 0, change, test)
}

// onBothWithQuota does so with a limit for the size of the database.
func onBothWithQuota(t *testing.T, quota int64, change func(*storage.Options), test func(t *testing.T, s server)) {
	t.Helper()
	for _, transport := range []string{"in-process", "grpc"} {
		t.Run(transport, func(t *testing.T) {
			options := storage.NewOptions()
			if change != nil {
				change(options)
			}
			config := storagetest.NewConfig(nil)
			var s server
			if transport == "in-process" {
				config.Embedded = storagetest.StartEmbedded(t, func(c *embedded.Config) { c.QuotaBytes = quota })
				s.client = config.Embedded.Client()
			} else {
				url := storagetest.StartGRPC(t, func(c *embed.Config) { c.QuotaBackendBytes = quota })
				options.Etcd.StorageConfig.Transport.ServerList = []string{url}
				s.client = storagetest.NewClient(t, url)
			}
			if errs := options.Validate(); len(errs) > 0 {
				t.Fatal(errs)
			}
			s.options, s.config = options, config
			s.Stores = storagetest.NewStores(t, options, config)
			// Over gRPC the library checks for support in the background.
			poll.Eventually(t, func() string {
				if !feature.DefaultFeatureSupportChecker.Supports(apistorage.RequestWatchProgress) {
					return "progress requests are not known to be supported"
				}
				return ""
			})
			test(t, s)
		})
	}
}

func in(ctx context.Context, namespace string) context.Context {
	return genericrequest.WithNamespace(ctx, namespace)
}

func (s server) createNamespace(t *testing.T, name string) {
	t.Helper()
	_, err := s.Namespaces.Create(in(t.Context(), ""), &tenancy.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}, rest.ValidateAllObjectFunc, &metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
}

func (s server) createPod(t *testing.T, namespace, name string) *tenancy.Pod {
	t.Helper()
	pod := &tenancy.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	created, err := s.Pods.Create(in(t.Context(), namespace), pod, rest.ValidateAllObjectFunc, &metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return created.(*tenancy.Pod)
}

func (s server) raw(t *testing.T, key string) []byte {
	t.Helper()
	response, err := s.client.Get(t.Context(), key)
	if err != nil {
		t.Fatal(err)
	}
	if len(response.Kvs) != 1 {
		t.Fatalf("there is no key %s", key)
	}
	return response.Kvs[0].Value
}

func TestCreateGetUpdateDelete(t *testing.T) {
	onBoth(t, nil, func(t *testing.T, s server) {
		s.createNamespace(t, "town")
		ctx := in(t.Context(), "town")
		created := s.createPod(t, "town", "p")

		for _, key := range []string{"/registry/tenancy.borough.io/namespaces/town", "/registry/tenancy.borough.io/pods/town/p"} {
			if value := s.raw(t, key); !bytes.HasPrefix(value, []byte("k8s\x00")) || !bytes.Contains(value, []byte("tenancy.borough.io/v1")) {
				t.Errorf("%s is not protobuf of v1: %q", key, value)
			}
		}
		got, err := s.Pods.Get(ctx, "p", &metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(created, got); diff != "" {
			t.Errorf("got something else than was created (-created +got):\n%s", diff)
		}

		changed := got.DeepCopyObject().(*tenancy.Pod)
		changed.Labels = map[string]string{"changed": "yes"}
		updated, _, err := s.Pods.Update(ctx, "p", rest.DefaultUpdatedObjectInfo(changed), rest.ValidateAllObjectFunc, rest.ValidateAllObjectUpdateFunc, false, &metav1.UpdateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if updated.(*tenancy.Pod).ResourceVersion == created.ResourceVersion {
			t.Error("the update has not moved the resource version")
		}
		_, _, err = s.Pods.Update(ctx, "p", rest.DefaultUpdatedObjectInfo(changed), rest.ValidateAllObjectFunc, rest.ValidateAllObjectUpdateFunc, false, &metav1.UpdateOptions{})
		if !apierrors.IsConflict(err) {
			t.Errorf("updating an old version: got %v, want Conflict", err)
		}

		if _, _, err := s.Pods.Delete(ctx, "p", rest.ValidateAllObjectFunc, &metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Pods.Get(ctx, "p", &metav1.GetOptions{}); !apierrors.IsNotFound(err) {
			t.Errorf("after the delete: got %v, want NotFound", err)
		}
	})
}

// TestFence shows that the registry writes through the fence, on all its paths.
func TestFence(t *testing.T) {
	onBoth(t, nil, func(t *testing.T, s server) {
		pod := &tenancy.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "town", Name: "p"}}
		create := func() error {
			_, err := s.Pods.Create(in(t.Context(), "town"), pod.DeepCopy(), rest.ValidateAllObjectFunc, &metav1.CreateOptions{})
			return err
		}
		putAsCreate := func() error {
			_, _, err := s.Pods.Update(in(t.Context(), "town"), "p", rest.DefaultUpdatedObjectInfo(pod), rest.ValidateAllObjectFunc, rest.ValidateAllObjectUpdateFunc, true, &metav1.UpdateOptions{})
			return err
		}
		remove := func() error {
			_, _, err := s.Namespaces.Delete(in(t.Context(), ""), "town", rest.ValidateAllObjectFunc, &metav1.DeleteOptions{})
			return err
		}
		for path, try := range map[string]func() error{"create": create, "put": putAsCreate} {
			if err := try(); !apierrors.IsNotFound(err) || !strings.Contains(err.Error(), `namespaces.tenancy.borough.io "town"`) {
				t.Errorf("%s without a namespace: got %v, want NotFound", path, err)
			}
		}
		s.createNamespace(t, "town")
		if err := create(); err != nil {
			t.Fatal(err)
		}
		if err := create(); !apierrors.IsAlreadyExists(err) {
			t.Errorf("creating again: got %v, want AlreadyExists", err)
		}
		if err := remove(); !apierrors.IsConflict(err) {
			t.Errorf("removing the namespace with a pod: got %v, want Conflict", err)
		}
		terminate(t, s, "town")
		if _, _, err := s.Pods.Delete(in(t.Context(), "town"), "p", rest.ValidateAllObjectFunc, &metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		for path, try := range map[string]func() error{"create": create, "put": putAsCreate} {
			if err := try(); !apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) || !apierrors.IsForbidden(err) {
				t.Errorf("%s in a terminating namespace: got %v, want Forbidden", path, err)
			}
		}
		if err := remove(); err != nil {
			t.Errorf("removing the empty namespace: %v", err)
		}
	})
}

func terminate(t *testing.T, s server, name string) {
	t.Helper()
	key, err := s.Namespaces.KeyFunc(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	err = s.Namespaces.Storage.GuaranteedUpdate(t.Context(), key, &tenancy.Namespace{}, false, nil, apistorage.SimpleUpdate(func(obj runtime.Object) (runtime.Object, error) {
		obj.(*tenancy.Namespace).DeletionTimestamp = new(metav1.Now())
		return obj, nil
	}), false, nil)
	if err != nil {
		t.Fatal(err)
	}
}

func TestList(t *testing.T) {
	onBoth(t, nil, func(t *testing.T, s server) {
		var want []string
		for _, namespace := range []string{"city", "town"} {
			s.createNamespace(t, namespace)
			for i := range 25 {
				s.createPod(t, namespace, fmt.Sprintf("p%02d", i))
				if namespace == "town" {
					want = append(want, fmt.Sprintf("p%02d", i))
				}
			}
		}
		// After a write to another resource the watch cache needs a progress notification.
		_, err := s.LimitRanges.Create(in(t.Context(), "town"), &tenancy.LimitRange{ObjectMeta: metav1.ObjectMeta{Namespace: "town", Name: "l"}}, rest.ValidateAllObjectFunc, &metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		for _, limit := range []int64{0, 10} {
			var got []string
			options := &metainternal.ListOptions{Limit: limit}
			for pages := 0; ; pages++ {
				obj, err := s.Pods.List(in(t.Context(), "town"), options)
				if err != nil {
					t.Fatal(err)
				}
				list := obj.(*tenancy.PodList)
				for _, pod := range list.Items {
					got = append(got, pod.Name)
				}
				if options.Continue = list.Continue; options.Continue == "" {
					break
				}
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("limit %d (-want +got):\n%s", limit, diff)
			}
		}
	})
}

func TestWatch(t *testing.T) {
	onBoth(t, nil, func(t *testing.T, s server) {
		s.createNamespace(t, "town")
		first := s.createPod(t, "town", "first")
		w, err := s.Pods.Watch(in(t.Context(), "town"), &metainternal.ListOptions{ResourceVersion: first.ResourceVersion})
		if err != nil {
			t.Fatal(err)
		}
		defer w.Stop()
		s.createPod(t, "town", "second")
		if _, _, err := s.Pods.Delete(in(t.Context(), "town"), "first", rest.ValidateAllObjectFunc, &metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		for _, want := range []struct {
			event watch.EventType
			name  string
		}{{watch.Added, "second"}, {watch.Deleted, "first"}} {
			event := <-w.ResultChan()
			obj := event.Object
			if shared, ok := obj.(runtime.CacheableObject); ok {
				obj = shared.GetObject()
			}
			if pod, ok := obj.(*tenancy.Pod); !ok || event.Type != want.event || pod.Name != want.name {
				t.Errorf("got %v, want %v", event, want)
			}
		}
	})
}

func TestDeleteCollection(t *testing.T) {
	onBoth(t, nil, func(t *testing.T, s server) {
		if s.Pods.DeleteCollectionWorkers != storage.DefaultDeleteCollectionWorkers {
			t.Errorf("%d workers delete", s.Pods.DeleteCollectionWorkers)
		}
		for _, namespace := range []string{"city", "town"} {
			s.createNamespace(t, namespace)
			for i := range 100 {
				s.createPod(t, namespace, fmt.Sprint("p", i))
			}
		}
		if _, err := s.Pods.DeleteCollection(in(t.Context(), "town"), rest.ValidateAllObjectFunc, &metav1.DeleteOptions{}, &metainternal.ListOptions{}); err != nil {
			t.Fatal(err)
		}
		for namespace, want := range map[string]int{"city": 100, "town": 0} {
			list, err := s.Pods.List(in(t.Context(), namespace), &metainternal.ListOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if got := len(list.(*tenancy.PodList).Items); got != want {
				t.Errorf("%d pods are left in %s, want %d", got, namespace, want)
			}
		}
	})
}

// TestCompaction runs the compactor at a short interval until the revision of a list
// is compacted.
func TestCompaction(t *testing.T) {
	short := func(o *storage.Options) {
		o.Etcd.StorageConfig.CompactionInterval = 20 * time.Millisecond
		o.Etcd.EnableWatchCache = false // it would serve the list
	}
	onBoth(t, short, func(t *testing.T, s server) {
		s.createNamespace(t, "town")
		old := s.createPod(t, "town", "old")
		poll.Eventually(t, func() string {
			s.createPod(t, "town", "new-"+string(old.UID)+time.Now().Format("150405.000000000"))
			_, err := s.Pods.List(in(t.Context(), "town"), &metainternal.ListOptions{ResourceVersion: old.ResourceVersion, ResourceVersionMatch: metav1.ResourceVersionMatchExact})
			if err == nil {
				return "the old revision can still be listed"
			}
			if !apierrors.IsResourceExpired(err) {
				t.Fatalf("got %v, want Expired", err)
			}
			return ""
		})
	})
}

// TestTimeToLive shows that the fence passes on the lease of an object.
func TestTimeToLive(t *testing.T) {
	onBoth(t, nil, func(t *testing.T, s server) {
		s.createNamespace(t, "town")
		key, err := s.Pods.KeyFunc(in(t.Context(), "town"), "p")
		if err != nil {
			t.Fatal(err)
		}
		pod := &tenancy.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "town", Name: "p"}}
		if err := s.Pods.Storage.Create(t.Context(), key, pod, &tenancy.Pod{}, 3600, false); err != nil {
			t.Fatal(err)
		}
		response, err := s.client.Get(t.Context(), "/registry"+key)
		if err != nil {
			t.Fatal(err)
		}
		if len(response.Kvs) != 1 || response.Kvs[0].Lease == 0 {
			t.Errorf("got %v, want a key with a lease", response.Kvs)
		}
	})
}

// TestPrefix shows that the fence uses --etcd-prefix.
func TestPrefix(t *testing.T) {
	for prefix, want := range map[string]string{"borough": "/borough", "/a/b/": "/a/b", "": ""} {
		t.Run(prefix, func(t *testing.T) {
			onBoth(t, func(o *storage.Options) { o.Etcd.StorageConfig.Prefix = prefix }, func(t *testing.T, s server) {
				s.createNamespace(t, "town")
				s.createPod(t, "town", "p")
				s.raw(t, want+"/tenancy.borough.io/namespaces/town")
				s.raw(t, want+"/tenancy.borough.io/pods/town/p")
				if _, _, err := s.Namespaces.Delete(in(t.Context(), ""), "town", rest.ValidateAllObjectFunc, &metav1.DeleteOptions{}); !apierrors.IsConflict(err) {
					t.Errorf("removing the namespace with a pod: got %v, want Conflict", err)
				}
			})
		})
	}
}
