// Copyright The Borough Authors.
// SPDX-License-Identifier: Apache-2.0

package fence_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/kubernetes"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apiserver/pkg/storage/value/encrypt/identity"

	"github.com/borough-io/borough/pkg/apis/tenancy"
	"github.com/borough-io/borough/pkg/apis/tenancy/install"
	v1 "github.com/borough-io/borough/pkg/apis/tenancy/v1"
	"github.com/borough-io/borough/pkg/storage/fence"
	"github.com/borough-io/borough/pkg/storage/storagetest"
	"github.com/borough-io/borough/pkg/storage/stored"
	"github.com/borough-io/borough/test/leaktest"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

const (
	namespacesPrefix  = "/registry/tenancy.borough.io/namespaces/"
	podsPrefix        = "/registry/tenancy.borough.io/pods/"
	limitRangesPrefix = "/registry/tenancy.borough.io/limitranges/"
)

var codec = func() runtime.Codec {
	scheme := runtime.NewScheme()
	install.Install(scheme)
	return serializer.NewCodecFactory(scheme).LegacyCodec(v1.SchemeGroupVersion)
}()

// fixture is an etcd with a fence, and the two kinds of store on it.
type fixture struct {
	t                *testing.T
	client           *kubernetes.Client
	fence            *fence.Fence
	namespaces, pods kubernetes.Interface
	// transactions counts those of the fence.
	transactions atomic.Int32
}

// countingKV counts transactions.
type countingKV struct {
	clientv3.KV
	transactions *atomic.Int32
}

func (c countingKV) Txn(ctx context.Context) clientv3.Txn {
	c.transactions.Add(1)
	return c.KV.Txn(ctx)
}

func config() fence.Config {
	return fence.Config{
		Namespaces: stored.Resource{GroupResource: tenancy.Resource("namespaces"), Prefix: namespacesPrefix, Codec: codec, Transformer: identity.NewEncryptCheckTransformer()},
		Namespaced: []stored.Resource{
			{GroupResource: tenancy.Resource("limitranges"), Prefix: limitRangesPrefix},
			{GroupResource: tenancy.Resource("pods"), Prefix: podsPrefix},
		},
		GenerationKey: "/registry/generation",
		GuardPrefix:   "/registry/guards/",
	}
}

func newFixture(t *testing.T, change ...func(*fence.Config)) *fixture {
	t.Helper()
	client := &kubernetes.Client{Client: storagetest.StartEmbedded(t).Client()}
	client.Kubernetes = client
	config := config()
	for _, change := range change {
		change(&config)
	}
	f, err := fence.New(config)
	if err != nil {
		t.Fatal(err)
	}
	fixture := &fixture{t: t, client: client, fence: f}
	client.KV = countingKV{client.KV, &fixture.transactions}
	fixture.namespaces = f.Wrap(tenancy.Resource("namespaces"), client)
	fixture.pods = f.Wrap(tenancy.Resource("pods"), client)
	return fixture
}

// otherServer returns the store of a resource of a server that has not written yet.
func (f *fixture) otherServer(resource string) kubernetes.Interface {
	f.t.Helper()
	other, err := fence.New(config())
	if err != nil {
		f.t.Fatal(err)
	}
	return other.Wrap(tenancy.Resource(resource), f.client)
}

// write writes without the fence, as another server would.
func (f *fixture) write(key, value string) int64 {
	f.t.Helper()
	response, err := f.client.Put(f.t.Context(), key, value)
	if err != nil {
		f.t.Fatal(err)
	}
	return response.Header.Revision
}

// remove removes without the fence.
func (f *fixture) remove(key string) {
	f.t.Helper()
	if _, err := f.client.Delete(f.t.Context(), key); err != nil {
		f.t.Fatal(err)
	}
}

func (f *fixture) exists(key string) bool {
	f.t.Helper()
	response, err := f.client.KV.Get(f.t.Context(), key)
	if err != nil {
		f.t.Fatal(err)
	}
	return len(response.Kvs) > 0
}

func encode(t testing.TB, namespace *tenancy.Namespace) string {
	t.Helper()
	data, err := runtime.Encode(codec, namespace)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func active(t testing.TB) string { return encode(t, &tenancy.Namespace{}) }

func terminating(t testing.TB) string {
	return encode(t, &tenancy.Namespace{ObjectMeta: metav1.ObjectMeta{DeletionTimestamp: new(metav1.Now())}})
}

func TestCreate(t *testing.T) {
	const namespaceKey, podKey = namespacesPrefix + "town", podsPrefix + "town/p"
	notFound := func(t *testing.T, err error) {
		if !apierrors.IsNotFound(err) || err.Error() != `namespaces.tenancy.borough.io "town" not found` {
			t.Errorf("got %v, want NotFound for the namespace", err)
		}
	}
	forbidden := func(t *testing.T, err error) {
		t.Helper()
		if !apierrors.IsForbidden(err) {
			t.Fatalf("got %v, want Forbidden", err)
		}
		const text = `pods.tenancy.borough.io "p" is forbidden: unable to create new content in namespace town because it is being terminated`
		if err.Error() != text {
			t.Errorf("got %q, want %q", err, text)
		}
		cause, _ := apierrors.StatusCause(err, corev1.NamespaceTerminatingCause)
		want := metav1.StatusCause{Type: "NamespaceTerminating", Message: "namespace town is being terminated", Field: "metadata.namespace"}
		if diff := cmp.Diff(want, cause); diff != "" {
			t.Errorf("cause (-want +got):\n%s", diff)
		}
	}
	internal := func(t *testing.T, err error) {
		if !apierrors.IsInternalError(err) || !strings.Contains(err.Error(), "town") {
			t.Errorf("got %v, want an internal error that names the namespace", err)
		}
	}
	for name, test := range map[string]struct {
		before func(f *fixture)
		// known is whether the namespace was active, and a pod created in it,
		// before that.
		known bool
		// err checks the error; nil means success.
		err func(t *testing.T, err error)
		// conflict is whether the pod exists already.
		conflict bool
	}{
		"no namespace":          {err: notFound},
		"active":                {before: func(f *fixture) { f.write(namespaceKey, active(f.t)) }},
		"terminating":           {before: func(f *fixture) { f.write(namespaceKey, terminating(f.t)) }, err: forbidden},
		"unreadable":            {before: func(f *fixture) { f.write(namespaceKey, "rubbish") }, err: internal},
		"other namespace":       {before: func(f *fixture) { f.write(namespacesPrefix+"townhall", active(f.t)) }, err: notFound},
		"known":                 {known: true},
		"known and changed":     {known: true, before: func(f *fixture) { f.write(namespaceKey, active(f.t)) }},
		"known and terminating": {known: true, before: func(f *fixture) { f.write(namespaceKey, terminating(f.t)) }, err: forbidden},
		"known and gone":        {known: true, before: func(f *fixture) { f.remove(namespaceKey) }, err: notFound},
		"known and created again": {known: true, before: func(f *fixture) {
			f.remove(namespaceKey)
			f.write(namespaceKey, active(f.t))
		}},
		"exists": {before: func(f *fixture) {
			f.write(namespaceKey, active(f.t))
			f.write(podKey, "there")
		}, conflict: true},
		"exists in a terminating namespace": {known: true, before: func(f *fixture) {
			f.write(podKey, "there")
			f.write(namespaceKey, terminating(f.t))
		}, conflict: true},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			if test.known {
				f.write(namespaceKey, active(t))
				if response, err := f.pods.OptimisticPut(t.Context(), podsPrefix+"town/earlier", nil, 0, kubernetes.PutOptions{}); err != nil || !response.Succeeded {
					t.Fatalf("creating the earlier pod: %v, %v", response, err)
				}
			}
			if test.before != nil {
				test.before(f)
			}
			response, err := f.pods.OptimisticPut(t.Context(), podKey, []byte("new"), 0, kubernetes.PutOptions{GetOnFailure: true})
			switch {
			case test.err != nil:
				if err == nil {
					t.Fatalf("got %v, want an error", response)
				}
				test.err(t, err)
				if f.exists(podKey) {
					t.Error("the pod has been created nevertheless")
				}
			case err != nil:
				t.Fatal(err)
			case test.conflict:
				if response.Succeeded || response.Revision == 0 || string(response.KV.GetValue()) != "there" {
					t.Errorf("got %v, want a conflict with the existing value", response)
				}
			default:
				got, err := f.client.KV.Get(t.Context(), podKey)
				if err != nil {
					t.Fatal(err)
				}
				if !response.Succeeded || len(got.Kvs) != 1 || string(got.Kvs[0].Value) != "new" || got.Kvs[0].ModRevision != response.Revision {
					t.Errorf("got %v, stored %v", response, got.Kvs)
				}
			}
		})
	}
}

func TestCreateConflictWithoutValue(t *testing.T) {
	f := newFixture(t)
	f.write(podsPrefix+"town/p", "there")
	response, err := f.pods.OptimisticPut(t.Context(), podsPrefix+"town/p", nil, 0, kubernetes.PutOptions{})
	if err != nil || response.Succeeded || response.KV != nil {
		t.Errorf("got %v, %v; want a conflict without the value", response, err)
	}
}

func TestCreateWithLease(t *testing.T) {
	f := newFixture(t)
	f.write(namespacesPrefix+"town", active(t))
	lease, err := f.client.Grant(t.Context(), 3600)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.pods.OptimisticPut(t.Context(), podsPrefix+"town/p", nil, 0, kubernetes.PutOptions{LeaseID: lease.ID}); err != nil {
		t.Fatal(err)
	}
	got, err := f.client.KV.Get(t.Context(), podsPrefix+"town/p")
	if err != nil {
		t.Fatal(err)
	}
	if len(got.Kvs) != 1 || clientv3.LeaseID(got.Kvs[0].Lease) != lease.ID {
		t.Errorf("got %v, want a key with lease %x", got.Kvs, lease.ID)
	}
	if _, err := f.namespaces.OptimisticPut(t.Context(), namespacesPrefix+"short", nil, 0, kubernetes.PutOptions{LeaseID: lease.ID}); !apierrors.IsInternalError(err) {
		t.Errorf("got %v for a namespace with a lease, want an internal error", err)
	}
}

func TestUpdateIsNotFenced(t *testing.T) {
	f := newFixture(t)
	f.write(namespacesPrefix+"town", terminating(t))
	revision := f.write(podsPrefix+"town/p", "old")
	response, err := f.pods.OptimisticPut(t.Context(), podsPrefix+"town/p", []byte("new"), revision, kubernetes.PutOptions{})
	if err != nil || !response.Succeeded {
		t.Errorf("updating in a terminating namespace: %v, %v", response, err)
	}
	response, err = f.pods.OptimisticPut(t.Context(), podsPrefix+"town/p", []byte("newer"), revision, kubernetes.PutOptions{GetOnFailure: true})
	if err != nil || response.Succeeded || string(response.KV.GetValue()) != "new" {
		t.Errorf("updating at an old revision: %v, %v", response, err)
	}
}

func TestMalformedKey(t *testing.T) {
	f := newFixture(t)
	for _, key := range []string{podsPrefix, podsPrefix + "p", podsPrefix + "town/", podsPrefix + "/p", podsPrefix + "town/p/q", "/elsewhere/town/p"} {
		if _, err := f.pods.OptimisticPut(t.Context(), key, nil, 0, kubernetes.PutOptions{}); !apierrors.IsInternalError(err) {
			t.Errorf("creating %q: got %v, want an internal error", key, err)
		}
	}
}

func TestCanceled(t *testing.T) {
	f := newFixture(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	f.write(namespacesPrefix+"town", "rubbish")
	// A read may still be answered, in which case there are other errors.
	if _, err := f.pods.OptimisticPut(ctx, podsPrefix+"town/p", nil, 0, kubernetes.PutOptions{}); !errors.Is(err, context.Canceled) && !apierrors.IsInternalError(err) {
		t.Errorf("creating: got %v", err)
	}
	if response, err := f.namespaces.OptimisticDelete(ctx, namespacesPrefix+"town", 1, kubernetes.DeleteOptions{}); !errors.Is(err, context.Canceled) && (err != nil || response.Succeeded) {
		t.Errorf("removing: got %v, %v", response, err)
	}
}

// TestClusterScopedResource creates an object of a resource that is not in the Config, and
// for which no Namespace has to exist.
func TestClusterScopedResource(t *testing.T) {
	f := newFixture(t)
	store := f.fence.Wrap(schema.GroupResource{Resource: "pods"}, f.client) // of another group
	const key = "/registry/others/town"
	var written int64
	for range 2 {
		response, err := store.OptimisticPut(t.Context(), key, []byte("value"), 0, kubernetes.PutOptions{GetOnFailure: true})
		if err != nil || response.Succeeded == (response.KV != nil) {
			t.Fatalf("got %v, %v; want success, and then the object", response, err)
		}
		written = max(written, response.KV.GetModRevision())
	}
	response, err := store.OptimisticPut(t.Context(), key, []byte("another"), written, kubernetes.PutOptions{})
	if err != nil || !response.Succeeded {
		t.Errorf("updating: got %v, %v", response, err)
	}
}

// TestMaxNamespaced shows that etcd accepts the largest transaction of a fence.
func TestMaxNamespaced(t *testing.T) {
	f := newFixture(t)
	c := config()
	c.Namespaced = nil
	for i := range fence.MaxNamespaced {
		name := strings.Repeat("r", i+1)
		c.Namespaced = append(c.Namespaced, stored.Resource{GroupResource: tenancy.Resource(name), Prefix: "/registry/tenancy.borough.io/" + name + "/"})
	}
	wide, err := fence.New(c)
	if err != nil {
		t.Fatal(err)
	}
	revision := f.write(namespacesPrefix+"town", terminating(t))
	response, err := wide.Wrap(tenancy.Resource("namespaces"), f.client).OptimisticDelete(t.Context(), namespacesPrefix+"town", revision, kubernetes.DeleteOptions{})
	if err != nil || !response.Succeeded {
		t.Errorf("got %v, %v; want success", response, err)
	}
}
